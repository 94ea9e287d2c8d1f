#include "server/routes/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace quire::server {
namespace {

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

// Hashes what a response depends on beside its request (FNV-1a).
std::string fingerprint_of(const EngineApi& engine, const ServiceConfig& config) {
  const ModelInfo& info = engine.model_info();
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;  // 0xff ends a text, because UTF-8 does not contain it
  };
  for (const std::string_view text :
       {std::string_view(config.build), std::string_view(info.name),
        std::string_view(info.architecture), std::string_view(info.weight_dtype),
        std::string_view(info.kv_cache_dtype), std::string_view(info.attention_backend),
        engine.chat_template(), std::string_view(config.tool_call_parser),
        std::string_view(config.reasoning_parser)}) {
    add(text);
  }
  add(fmt::format("{} {} {} {}", info.num_parameters, info.max_model_len, info.max_num_seqs,
                  info.block_size));
  return fmt::format("fp_{:016x}", hash);
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
      max_prompt_bytes(max_context_bytes(engine)),
      system_fingerprint(fingerprint_of(engine, config)) {}

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
      {"GET", "/load", kNeedsKey, kTransport, get_load, kPolled},
      {"GET", "/get_load", kNeedsKey, kTransport, get_router_load, kPolled},
      {"GET", "/v1/loads", kNeedsKey, kTransport, get_gateway_loads, kPolled},
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
                                            clipped(model), fmt::join(names, "', '")),
                                "model", "model_not_found"));
  return true;
}

}  // namespace quire::server
