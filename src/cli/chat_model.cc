#include "cli/chat_model.h"

#include <chrono>
#include <utility>

#include "base/marked_text.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "engine/chat_format.h"
#include "engine/engine_internals.h"
#include "engine/run_requests.h"
#include "jinja/value.h"
#include "server/openai/conversation.h"

namespace quire::cli {
namespace {

AnswerStats stats_of(const RequestResult& result) {
  using Seconds = std::chrono::duration<double>;
  const SampleResult& sample = result.samples[0];
  AnswerStats stats = {.num_prompt_tokens = static_cast<int>(result.prompt_token_ids.size()),
                       .num_cached_tokens = result.num_cached_tokens,
                       .num_output_tokens = static_cast<int>(sample.token_ids.size())};
  if (sample.token_ids.empty()) return stats;
  stats.first_token_s = Seconds(sample.first_token_time - result.submit_time).count();
  stats.decode_s = Seconds(sample.last_token_time - sample.first_token_time).count();
  return stats;
}

class LocalModel final : public ChatModel {
 public:
  explicit LocalModel(Engine& engine) : engine_(engine), port_(engine_port(engine)) {}

  std::string name() const override { return engine_.model_info().name; }
  int max_model_len() const override { return engine_.model_info().max_model_len; }

  std::optional<SamplingDefaults> sampling_defaults() const override { return defaults(); }

  bool can_switch_thinking() const override {
    server::RequestDefaults defaults;
    defaults.chat_template = engine_.chat_template();
    return !server::template_ignores(defaults, "enable_thinking");
  }

  Status check_system(const std::string& system) const override {
    return check_chat_template(engine_, system);
  }

  Result<int> num_tokens(const std::vector<ChatMessage>& messages,
                         const ChatSettings& settings) const override {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encode(messages, settings));
    return static_cast<int>(ids.size());
  }

  Result<ChatAnswer> answer(const std::vector<ChatMessage>& messages, const ChatSettings& settings,
                            uint64_t attempt, const Show& show) override {
    Request request;
    request.sampling = settings.sampling.applied_to(defaults().params);
    // Without a changed seed, the reply would be the same: a prompt's default seed never changes.
    if (attempt > 0) request.sampling.seed = request.sampling.seed.value_or(0) + attempt;
    QUIRE_ASSIGN_OR_RETURN(request.prompt_token_ids, encode(messages, settings));
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    const RunOptions options = {
        .on_output = [&](size_t, const Output& output) { return show(output.text); },
        .interrupted = CancelScope::interrupted};
    std::vector<RequestResult> results = run_requests(port_, std::move(requests), options);
    QUIRE_RETURN_IF_ERROR(results[0].first_error());
    SampleResult& sample = results[0].samples[0];
    return ChatAnswer{.text = std::move(sample.text),
                      .finish_reason = sample.finish_reason.value_or(FinishReason::kCancelled),
                      .stats = stats_of(results[0])};
  }

 private:
  SamplingDefaults defaults() const {
    SamplingDefaults values = engine_.sampling_defaults(SamplingFallback::kChat);
    values.params.max_tokens = max_model_len();
    return values;
  }

  Result<std::vector<int32_t>> encode(const std::vector<ChatMessage>& messages,
                                      const ChatSettings& settings) const {
    using jinja::Value;
    if (!settings.thinks) return engine_.encode_chat(messages);
    std::vector<Value> items;
    for (const ChatMessage& message : messages) {
      items.push_back(Value::dict(
          {{"role", Value::string(message.role)}, {"content", Value::string(message.content)}}));
    }
    QUIRE_ASSIGN_OR_RETURN(
        const RenderedChat prompt,
        EngineInternals::render_chat(
            engine_, Value::dict({{"messages", Value::list(std::move(items))},
                                  {"add_generation_prompt", Value::boolean(true)},
                                  {"enable_thinking", Value::boolean(*settings.thinks)}})));
    return EngineInternals::encode(engine_, prompt.text, false, prompt.untrusted);
  }

  Engine& engine_;
  EnginePort port_;
};

}  // namespace

std::unique_ptr<ChatModel> make_local_model(Engine& engine) {
  return std::make_unique<LocalModel>(engine);
}

}  // namespace quire::cli
