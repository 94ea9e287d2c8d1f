#include "supervisor/upstream.h"

#include <pthread.h>

#include <exception>
#include <utility>

#include "base/guarded.h"

namespace quire::supervisor {

Result<std::unique_ptr<Upstream>> Upstream::open(const std::string& socket) {
  // A model may take any time until its first byte; the child and the client bound it.
  constexpr std::chrono::hours kNoLimit(24 * 365);
  http_client::ClientConfig config;
  config.url.host = "localhost";
  config.unix_socket_path = socket;
  config.idle_timeout = kNoLimit;
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<http_client::Client> client,
                         http_client::Client::create(std::move(config)));
  try {
    return std::unique_ptr<Upstream>(new Upstream(std::move(client)));
  } catch (const std::exception& error) {
    return unavailable(std::string("[supervisor] cannot start a thread; ") + text_of(error));
  }
}

Upstream::Upstream(std::unique_ptr<http_client::Client> client)
    : client_(std::move(client)), thread_([this] {
        run_guarded("[supervisor] lost the connections to a model's process",
                    [this] { client_->run(); });
      }) {
  ::pthread_setname_np(thread_.native_handle(), "quire-upstream");
}

Upstream::~Upstream() {
  client_->post([this] { client_->stop(); });
  thread_.join();
}

void Upstream::send(http_client::Request request,
                    std::shared_ptr<http_client::ResponseHandler> handler) {
  client_->post([this, request = std::move(request), handler = std::move(handler)]() mutable {
    client_->send(std::move(request), std::move(handler));
  });
}

void Upstream::send_with_limit(http_client::Request request,
                               std::shared_ptr<http_client::ResponseHandler> handler,
                               std::chrono::milliseconds limit) {
  const std::weak_ptr<http_client::ResponseHandler> weak = handler;
  send(std::move(request), std::move(handler));
  client_->post([this, weak, limit] {
    client_->call_at(std::chrono::steady_clock::now() + limit, [this, weak] {
      if (const auto held = weak.lock()) client_->cancel(*held);
    });
  });
}

void Upstream::cancel(std::shared_ptr<http_client::ResponseHandler> handler) {
  client_->post([this, handler = std::move(handler)] { client_->cancel(*handler); });
}

}  // namespace quire::supervisor
