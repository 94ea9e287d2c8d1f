// A request for a model: waits until the model is loaded, goes to the model's process, and passes
// the response on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/request_context.h"
#include "supervisor/model_pool.h"

namespace quire::supervisor {

// A response with a length is passed on when it is whole, because the transport bounds the memory
// of unread whole responses; a stream is passed on piece by piece.
class ProxiedRequest final : public PoolRequest,
                             public http_client::ResponseHandler,
                             public std::enable_shared_from_this<ProxiedRequest> {
 public:
  // Called with the start of a response's body.
  using OnFirstPiece = std::function<void(std::string_view piece)>;

  // key: the value of the header authorization for the process; empty: none.
  ProxiedRequest(ModelPool& pool, size_t model, server::RequestContext&& context, std::string key,
                 OnFirstPiece on_first_piece = nullptr);

  // Waits for the model.
  void submit();
  // Ends the request with an error, if it has not ended.
  void cancel(const server::ApiError& error);

  void run(std::shared_ptr<Lease> lease) override;
  void refuse(const PoolRefusal& refusal) override;

 private:
  enum class Phase { kWaiting, kRunning, kStreaming, kDone };

  void on_field(std::string_view name, std::string_view value) override;
  void on_head(int status) override;
  bool on_body(std::string_view piece) override;
  void on_end(const Status& status) override;

  void client_left();
  http_client::Request upstream_request();
  void fail(const server::ApiError& error, Phase before);
  void end_stream_with(const server::ApiError& error);
  // Moves to kDone, and returns the phase before and the lease.
  std::pair<Phase, std::shared_ptr<Lease>> finish();

  ModelPool& pool_;
  const size_t model_;
  server::RequestContext context_;
  const std::string key_;
  OnFirstPiece on_first_piece_;
  Clock::time_point submitted_ = {};

  std::mutex mutex_;
  Phase phase_ = Phase::kWaiting;
  std::shared_ptr<Lease> lease_;

  // Used on the upstream's thread:
  int status_ = 0;
  bool has_length_ = false;
  std::string content_type_;
  http::Headers headers_;
  std::string body_;        // of a response with a length
  std::string stream_end_;  // the last bytes of a stream
};

}  // namespace quire::supervisor
