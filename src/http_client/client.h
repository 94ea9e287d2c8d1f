// An HTTP/1.1 client for many requests at once from one thread: keep-alive, bodies in pieces, TCP,
// TLS and Unix sockets. Plain functions wait for one whole answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_client/url.h"
#include "quire/status.h"

namespace quire::http_client {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "GET";
  std::string target = "/";  // behind the URL's path
  std::string body = {};     // JSON, where there is one
};

struct ClientConfig {
  Url url;
  std::string unix_socket_path = {};  // instead of the URL's host and port
  bool verify_peer = true;            // of TLS: the certificate and its name
  Headers headers = {};               // of every request
  std::chrono::seconds connect_timeout{10};
  std::chrono::seconds idle_timeout{600};  // of a request, without a byte from the server
  size_t max_idle_connections = 1024;
};

// Told on the thread that runs the client, in this order, never from within send().
class ResponseHandler {
 public:
  virtual ~ResponseHandler() = default;
  virtual void on_head(int status) = 0;
  virtual void on_body(std::string_view piece) = 0;
  // Once, the last. Not ok: unavailable() when no connection could be had, else the answer is cut,
  // broken or late.
  virtual void on_end(const Status& status) = 0;
};

// Not thread-safe: everything happens on one thread.
class Client {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Resolves the host's name; connects with the first request.
  static Result<std::unique_ptr<Client>> create(ClientConfig config);
  virtual ~Client() = default;  // what is under way ends without a word

  // A request that meets a kept connection which the server has just closed is sent once more.
  virtual void send(Request request, std::shared_ptr<ResponseHandler> handler) = 0;
  virtual void call_at(TimePoint when, std::function<void()> call) = 0;
  // Until stop() is called from within a handler or a call.
  virtual void run() = 0;
  virtual void stop() = 0;
};

struct Response {
  int status = 0;
  std::string body;
};

// One whole answer. kCancelled once interrupted() says so.
Result<Response> fetch(Client& client, Request request, size_t max_body_bytes,
                       const std::function<bool()>& interrupted);

}  // namespace quire::http_client
