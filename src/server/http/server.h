// An HTTP/1.1 server over TCP, TLS and Unix sockets: keep-alive, pipelining, chunked bodies,
// Expect, streams, and limits on every resource that a client can hold. A few threads call one
// handler.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quire/status.h"
#include "server/http/http.h"

namespace quire::http {

struct Limits {
  int max_connections = 8192;
  size_t max_header_bytes = size_t{16} << 10;
  int max_headers = 100;
  // Connections per client address (IPv6: per /64 network). Behind a trusted proxy: requests in
  // progress per address in X-Forwarded-For. 0: no bound.
  int max_connections_per_peer = 0;
  size_t max_body_bytes = size_t{32} << 20;
  // A body counts by the capacity of its buffer, which never exceeds its Content-Length.
  size_t max_total_body_bytes = size_t{512} << 20;  // all requests, until they are parsed
  size_t max_buffered_bytes = size_t{1} << 20;      // per stream, for a slow reader
  // All responses until they are sent; a response that buffers at most 64 KiB is not counted.
  size_t max_total_response_bytes = size_t{512} << 20;
  std::chrono::milliseconds header_timeout{10'000};  // first to last byte of a head
  std::chrono::milliseconds body_timeout{60'000};    // for a whole body
  std::chrono::milliseconds idle_timeout{75'000};    // between requests, and before the first byte
  std::chrono::milliseconds write_timeout{30'000};   // time in which the client accepts no byte
  // A write of N bytes must end within write_timeout + N / min_bytes_per_second.
  size_t min_bytes_per_second = size_t{16} << 10;
};

struct ServerConfig {
  std::string host = "127.0.0.1";
  int port = 8000;           // 0: any free port; port() returns it
  std::string uds;           // path of a Unix socket, instead of host and port
  std::string ssl_certfile;  // PEM files; both or none; read again when they change
  std::string ssl_keyfile;
  // Addresses and networks of proxies whose X-Forwarded-For is trusted; "unix": a Unix socket's
  // clients.
  std::vector<std::string> trusted_proxies;
  int num_threads = 2;
  Limits limits;
};

// For metrics: counters that only grow, and current values.
struct ServerStats {
  int num_open = 0;  // connections
  int64_t num_accepted = 0;
  int64_t num_refused = 0;  // connections beyond the limits
  int64_t num_timeouts = 0;
  int64_t num_slow_readers = 0;
  int64_t num_bad_requests = 0;  // not HTTP, or beyond a limit
  int64_t received_bytes = 0;    // without the overhead of TLS
  int64_t sent_bytes = 0;
  // Bytes that currently count against Limits::max_total_body_bytes and max_total_response_bytes.
  size_t body_bytes = 0;
  size_t response_bytes = 0;
};

class ListeningSocket;  // listen.h

// Returns the number of connections, from 1 to `wanted`, that a process can hold open if it may
// have `max_fds` descriptors and has `num_open_fds` open. Reserves descriptors for files, and for
// accepting connections in order to refuse them.
int connections_within(int wanted, int64_t max_fds, int64_t num_open_fds);

class Server {
 public:
  // Returns the error that start() would return before it binds, including errors in TLS files. A
  // caller with a long start-up can thus fail early.
  static Status check(const ServerConfig& config);
  // Binds and starts to serve. Errors name the field of ServerConfig and a remedy. Raises the
  // process's limit of descriptors to the system's maximum; if that is too low for max_connections,
  // lowers max_connections and logs a warning.
  static Result<std::unique_ptr<Server>> start(const ServerConfig& config, Handler handler,
                                               Hooks hooks = {});
  // Serves on sockets from listen_on(), so that the caller can check first which machines can reach
  // them.
  static Result<std::unique_ptr<Server>> start(const ServerConfig& config,
                                               std::vector<ListeningSocket> sockets,
                                               Handler handler, Hooks hooks = {});
  virtual ~Server() = default;  // stops at once and closes all connections

  virtual int port() const = 0;
  virtual ServerStats stats() const = 0;

  // Stops accepting. An open connection ends after its current response. A connection that is idle,
  // or whose response promised keep-alive, accepts one more request for 250 ms, because the client
  // may already have sent it. Returns true once all connections are closed, false after `limit`.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
};

}  // namespace quire::http
