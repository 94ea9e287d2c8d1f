// A server with a handler for tests, and helpers for its clients.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/server.h"
#include "support/eventually.h"
#include "support/http_client.h"

namespace quire::http {

using testing::eventually;
using testing::HttpAnswer;
using testing::HttpClient;

ServerConfig any_port();

// Responds to /echo with the method, path and body. Keeps /hold, and the request of /keep as well,
// for the test; throws at /throw, drops /drop, and responds to any other path with 404.
class TestServer {
 public:
  explicit TestServer(const ServerConfig& config = any_port(), Hooks hooks = {});
  ~TestServer();

  HttpClient connect() const { return HttpClient::tcp(port()); }
  int port() const { return server_->port(); }
  Server& server() { return *server_; }
  ServerStats stats() const { return server_->stats(); }
  void stop() { server_.reset(); }

  // Returns the next request for /hold, or throws if none arrives.
  std::shared_ptr<Exchange> held(std::chrono::milliseconds limit = std::chrono::seconds(10));
  // Releases the requests for /keep.
  void drop_kept();
  // The number of on_closed() calls of held exchanges.
  int num_closed();

 private:
  void handle(Request&& request, std::shared_ptr<Exchange> exchange);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Exchange>> held_;
  std::vector<Request> kept_;
  int num_closed_ = 0;
  std::unique_ptr<Server> server_;
};

inline std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

}  // namespace quire::http
