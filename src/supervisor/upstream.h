// The connections to the server in a child process, on a thread of their own.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "http_client/client.h"

namespace quire::supervisor {

class Upstream {
 public:
  // Connects to this Unix socket when requests need it.
  static Result<std::unique_ptr<Upstream>> open(const std::string& socket);
  // Drops the requests in progress without a call of their handlers. A handler must not call it.
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // Any thread may call these; the calls take effect in their order.
  void send(http_client::Request request, std::shared_ptr<http_client::ResponseHandler> handler);
  // Does the same, and cancels the request after this time.
  void send_with_limit(http_client::Request request,
                       std::shared_ptr<http_client::ResponseHandler> handler,
                       std::chrono::milliseconds limit);
  // Closes the connection of the handler's request, if the request has not ended.
  void cancel(std::shared_ptr<http_client::ResponseHandler> handler);

 private:
  explicit Upstream(std::unique_ptr<http_client::Client> client);

  std::unique_ptr<http_client::Client> client_;
  std::thread thread_;
};

}  // namespace quire::supervisor
