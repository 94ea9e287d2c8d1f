// HTTP/1.1 over TCP, TLS and Unix sockets: keep-alive, pipelining, chunked bodies, Expect,
// streams, limits on all that a client can hold. A few threads; one handler.
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
  int max_connections_per_peer = 0;  // of one address (an IPv6 network of /64); 0: no bound
  size_t max_body_bytes = size_t{32} << 20;
  size_t max_total_body_bytes = size_t{512} << 20;  // of all requests, until they are parsed
  size_t max_buffered_bytes = size_t{1} << 20;      // of a stream, for a slow reader
  // Of all answers, until they are sent; 64 KiB of each are not counted.
  size_t max_total_answer_bytes = size_t{512} << 20;
  std::chrono::milliseconds header_timeout{10'000};  // first byte to last of a head
  std::chrono::milliseconds body_timeout{60'000};    // of a whole body
  std::chrono::milliseconds idle_timeout{75'000};    // between requests, and before the first byte
  std::chrono::milliseconds write_timeout{30'000};   // without a byte taken
  size_t min_bytes_per_second = size_t{16} << 10;    // taken, beside one write_timeout
};

struct ServerConfig {
  std::string host = "127.0.0.1";
  int port = 8000;               // 0: any; port() says which
  std::string unix_socket_path;  // instead of host and port
  std::string tls_certificate;   // PEM files; both or none. Read again when they change
  std::string tls_key;
  int num_threads = 2;
  Limits limits;
};

// Counts for metrics; each only grows, but for num_open.
struct ServerStats {
  int num_open = 0;
  int64_t num_accepted = 0;
  int64_t num_refused = 0;  // connections beyond the limits
  int64_t num_timeouts = 0;
  int64_t num_slow_readers = 0;
  int64_t num_bad_requests = 0;  // heads and bodies that are no HTTP or break a limit
};

class ListeningSocket;  // listen.h

class Server {
 public:
  // What start() would refuse before it binds, the TLS pair too: for a caller who has much else to
  // do before.
  static Status check(const ServerConfig& config);
  // Binds and serves. Errors name the flag and a remedy ("--port 8000 is taken").
  static Result<std::unique_ptr<Server>> start(const ServerConfig& config, Handler handler,
                                               Hooks hooks = {});
  // The same where listen_on() has bound: who may reach it is known before it serves.
  static Result<std::unique_ptr<Server>> start(const ServerConfig& config,
                                               std::vector<ListeningSocket> sockets,
                                               Handler handler, Hooks hooks = {});
  virtual ~Server() = default;  // stops at once: what is open is closed

  virtual int port() const = 0;
  virtual ServerStats stats() const = 0;

  // Accepts no further connection; each open one is closed after the answer it is on. Returns true
  // once all are gone, false when the time is over.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
};

}  // namespace quire::http
