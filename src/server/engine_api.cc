#include "server/engine_api.h"

#include <utility>

#include "engine/engine_internals.h"

namespace quire::server {
namespace {

class RealEngine final : public EngineApi {
 public:
  explicit RealEngine(Engine& engine) : engine_(engine) {}

  Result<RequestId> submit(Request request, Engine::OutputCallback on_output) override {
    return engine_.submit(std::move(request), std::move(on_output));
  }
  void cancel(RequestId id) override { engine_.cancel(id); }
  Result<RenderedChat> render_chat(const jinja::Value& variables) const override {
    return EngineInternals::render_chat(engine_, variables);
  }
  std::string_view chat_template() const override { return engine_.chat_template(); }
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens,
                                      const ByteSpans& untrusted) const override {
    return EngineInternals::encode(engine_, text, add_special_tokens, untrusted);
  }
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const override {
    return engine_.decode(ids, skip_special_tokens);
  }
  std::string token_bytes(int32_t id) const override { return engine_.token_bytes(id); }
  bool is_added_token(int32_t id) const override {
    const Tokenizer* const tokenizer = EngineInternals::tokenizer(engine_);
    return tokenizer != nullptr && tokenizer->is_added(id);
  }
  SamplingDefaults sampling_defaults(SamplingFallback fallback) const override {
    return engine_.sampling_defaults(fallback);
  }
  const ModelInfo& model_info() const override { return engine_.model_info(); }
  EngineStats stats() const override { return engine_.stats(); }
  std::vector<ReplicaState> replicas() const override { return engine_.replicas(); }
  Status health() const override { return engine_.health(); }

 private:
  Engine& engine_;
};

}  // namespace

std::unique_ptr<EngineApi> make_engine_api(Engine& engine) {
  return std::make_unique<RealEngine>(engine);
}

}  // namespace quire::server
