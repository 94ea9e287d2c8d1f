// Streams over Asio sockets (TCP and Unix), with or without TLS.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "server/http/connection.h"

namespace quire::http {

using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol,
                                                boost::asio::io_context::executor_type>;

// Returns the other end of the connection: "127.0.0.1:50312", "[::1]:50312" or "unix"; "unknown" if
// the client has disconnected.
std::string peer_name(const Socket& socket);

// `context` is the socket's I/O context. If `tls` is null, the stream is unencrypted.
std::unique_ptr<Stream> make_stream(boost::asio::io_context& context, Socket socket,
                                    const std::shared_ptr<boost::asio::ssl::context>& tls);

}  // namespace quire::http
