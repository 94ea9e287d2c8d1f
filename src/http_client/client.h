// An HTTP/1.1 client that runs many concurrent requests on one thread: keep-alive, streamed bodies,
// TCP, TLS and Unix sockets. fetch() waits for one whole response.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_client/parsers.h"
#include "quire/status.h"

namespace quire::http_client {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "GET";
  std::string target = "/";  // appended to the URL's path
  std::string body = {};     // `headers` may set its Content-Type; the default is application/json
  Headers headers = {};      // in addition to ClientConfig::headers
};

struct ClientConfig {
  Url url;
  std::string unix_socket_path = {};         // instead of the URL's host and port
  bool verify_peer = true;                   // TLS: checks the certificate and its name
  Headers headers = {};                      // sent with every request
  std::chrono::seconds connect_timeout{10};  // per connection, including the handshake of TLS
  std::chrono::seconds idle_timeout{600};    // per request: time without a byte from the server
  size_t max_idle_connections = 1024;
};

// Receives a response: on_field() per header field, on_head() at most once, on_body() per piece,
// then on_end(). All calls are on the thread that runs the client, but never within send().
class ResponseHandler {
 public:
  virtual ~ResponseHandler() = default;
  virtual void on_field(std::string_view /*name*/, std::string_view /*value*/) {}
  virtual void on_head(int status) = 0;
  // Returns false to end the response early: the connection is closed, and on_end() gets an error.
  virtual bool on_body(std::string_view piece) = 0;
  // Called once, at the end. Errors: unavailable if no connection could be made or no byte came in
  // time; internal if the response is truncated or malformed, or if on_body() returned false.
  virtual void on_end(const Status& status) = 0;
};

// Not thread-safe, except for post(): all other calls and callbacks must be on one thread.
class Client {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Resolves the host name. The first request connects.
  static Result<std::unique_ptr<Client>> create(ClientConfig config);
  virtual ~Client() = default;  // requests in progress end without a call of on_end()

  // Sends a request. If a kept connection closes before the first byte of the response, the server
  // has probably closed it as idle, so the request is sent once more on a new connection. In rare
  // cases the server thus receives it twice.
  virtual void send(Request request, std::shared_ptr<ResponseHandler> handler) = 0;
  // Closes the connection of this handler's request, if the request has not ended. The handler gets
  // no further call.
  virtual void cancel(const ResponseHandler& handler) = 0;
  // Calls `call` on the thread that runs the client, as soon as it runs. Any thread may call this.
  virtual void post(std::function<void()> call) = 0;
  // Calls `call` at this time, or later if run() does not run then.
  virtual void call_at(TimePoint when, std::function<void()> call) = 0;
  // Runs until stop() is called from a handler or a timer callback. A stop() before run() has no
  // effect.
  virtual void run() = 0;
  virtual void stop() = 0;
};

struct Response {
  int status = 0;
  std::string body;
};

// Waits for one whole response. Polls interrupted(), and returns kCancelled once it is true.
Result<Response> fetch(Client& client, Request request, size_t max_body_bytes,
                       const std::function<bool()>& interrupted);

}  // namespace quire::http_client
