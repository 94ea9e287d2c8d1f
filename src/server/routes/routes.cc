#include "server/routes/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace quire::server {
namespace {

constexpr int kNumTokenizeWorkers = 1;

// Returns the size in bytes of a context that is full of the vocabulary's longest token.
size_t max_context_bytes(const EngineApi& engine) {
  const ModelInfo& info = engine.model_info();
  size_t longest = 0;
  for (int32_t id = 0; id < info.vocab_size; ++id) {
    longest = std::max(longest, engine.token_bytes(id).size());
  }
  if (longest == 0) return SIZE_MAX;  // no tokenizer: encode() returns the error
  return longest * static_cast<size_t>(info.max_model_len);
}

}  // namespace

// The tokenize workers are not in `health`: long texts can occupy them for more than
// `stall_timeout`, and a restart would not help.
ServerState::ServerState(EngineApi& the_engine, ServiceConfig given)
    : engine(the_engine),
      config(std::move(given)),
      admission(config.admission, config.keys.size()),
      workers(config.num_workers),
      tokenize_workers(kNumTokenizeWorkers),
      writers(config.num_workers),
      grammar_workers(config.num_grammar_threads),
      grammars(grammar_workers, config.grammar_queue),
      health(config.stall_timeout,
             {{"parsing", &workers}, {"writing", &writers}, {"grammar", &grammar_workers}}),
      max_prompt_bytes(max_context_bytes(engine)) {}

RequestDefaults request_defaults(const ServerState& state) {
  RequestDefaults defaults;
  defaults.sampling = state.engine.default_sampling();
  defaults.chat_template = state.engine.chat_template();
  return defaults;
}

std::span<const Route> routes() {
  using enum Access;
  using enum RunsOn;
  using enum RouteKind;
  static constexpr Route kRoutes[] = {
      {"GET", "/health", kPublic, kTransport, get_health, kPolled},
      {"GET", "/ready", kPublic, kTransport, get_ready, kPolled},
      {"GET", "/version", kNeedsKey, kTransport, get_version},
      {"GET", "/metrics", kNeedsKey, kWorker, get_metrics, kPolled},
      {"GET", "/openapi.json", kNeedsKey, kTransport, get_openapi},
      {"GET", "/v1/models", kNeedsKey, kTransport, get_models},
      {"GET", "/v1/models/", kNeedsKey, kTransport, get_model},
      {"GET", "/tokenizer_info", kNeedsKey, kTransport, get_tokenizer_info},
      {"POST", "/tokenize", kNeedsKey, kTokenizer, post_tokenize},
      {"POST", "/detokenize", kNeedsKey, kTokenizer, post_detokenize},
      {"POST", "/v1/completions", kNeedsKey, kWorker, post_completions, kGeneration},
      {"POST", "/v1/chat/completions", kNeedsKey, kWorker, post_chat_completions, kGeneration},
  };
  return kRoutes;
}

bool refuse_unknown_model(const ServerState& state, RequestContext& context,
                          const std::string& model) {
  const ServiceConfig& config = state.config;
  const std::vector<std::string>& names = config.model_names;
  if (model.empty() || model == config.model_path) return false;
  if (std::ranges::find(names, model) != names.end()) return false;
  context.refuse(make_api_error(404,
                                fmt::format("the model '{}' is not served; expected '{}'",
                                            model.substr(0, 200), names.front()),
                                "model", "model_not_found"));
  return true;
}

}  // namespace quire::server
