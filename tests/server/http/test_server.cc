#include "server/http/test_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <utility>

namespace quire::http {

using std::chrono::milliseconds;

ServerConfig any_port() {
  ServerConfig config;
  config.port = 0;
  return config;
}

TestServer::TestServer(const ServerConfig& config, Hooks hooks) {
  auto server = Server::start(
      config,
      [this](Request&& request, std::shared_ptr<Exchange> exchange) {
        handle(std::move(request), std::move(exchange));
      },
      std::move(hooks));
  if (!server.ok()) throw std::runtime_error(server.status().message());
  server_ = std::move(*server);
}

TestServer::~TestServer() {
  server_.reset();
  held_.clear();
}

void TestServer::handle(Request&& request, std::shared_ptr<Exchange> exchange) {
  if (request.path == "/throw") throw std::runtime_error("a handler's fault");
  if (request.path == "/drop") return;
  if (request.path == "/keep") {
    const std::lock_guard lock(mutex_);
    kept_.push_back(request);
  }
  if (request.path == "/hold" || request.path == "/keep") {
    exchange->on_closed([this] {
      const std::lock_guard lock(mutex_);
      ++num_closed_;
      changed_.notify_all();
    });
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(exchange));
    changed_.notify_all();
    return;
  }
  if (request.path != "/echo") {
    exchange->respond({.status = 404, .body = "{}"});
    return;
  }
  exchange->respond({.content_type = "text/plain",
                     .headers = {{"x-peer", request.peer}},
                     .body = request.method + " " + request.query + " " + request.body});
}

void TestServer::drop_kept() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
}

std::shared_ptr<Exchange> TestServer::held(milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, limit, [this] { return !held_.empty(); })) {
    throw std::runtime_error("no request for /hold came");
  }
  std::shared_ptr<Exchange> first = std::move(held_.front());
  held_.erase(held_.begin());
  return first;
}

int TestServer::num_closed() {
  const std::lock_guard lock(mutex_);
  return num_closed_;
}

}  // namespace quire::http
