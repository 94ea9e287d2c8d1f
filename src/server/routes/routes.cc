#include "server/routes/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/digest.h"
#include "base/model_name.h"
#include "base/text.h"
#include "server/tools/dialects.h"

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

// Hashes the inputs of a response other than its request (FNV-1a).
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
  for (const auto& own : {config.call_template, config.reasoning_template}) {
    add(own == nullptr ? std::string_view() : own->json);
  }
  add(fmt::format("{} {} {} {}", info.num_parameters, info.max_model_len, info.max_num_seqs,
                  info.block_size));
  return fmt::format("fp_{:016x}", hash);
}

struct Replacement {
  std::string_view path;  // and all paths below it; also without /v1
  std::string_view text;
};

constexpr std::string_view kOnlyText =
    "this server generates text; use POST /v1/chat/completions or /v1/responses";
constexpr std::string_view kNoFiles =
    "this server stores no files; send each request to POST /v1/chat/completions or /v1/responses";

constexpr std::string_view kNoCreate =
    "the server makes no models; run 'quire pull NAME' on its machine, then start it with that "
    "model";

// Routes that clients of OpenAI's, Ollama's, llama.cpp's and SGLang's servers ask for.
constexpr Replacement kReplacements[] = {
    {"/api/blobs", kNoCreate},
    {"/api/copy", "the server copies no models; its operator gives a model further names"},
    {"/api/create", kNoCreate},
    {"/api/delete", "run 'quire rm NAME' on the server's machine, while no server has the model"},
    {"/api/push", "the server uploads no models; copy the model's files instead"},
    {"/v1/assistants", "use POST /v1/responses, which replaces assistants"},
    {"/v1/audio", kOnlyText},
    {"/v1/batches", kNoFiles},
    {"/v1/chat", "use POST /v1/chat/completions"},
    {"/v1/files", kNoFiles},
    {"/v1/images", kOnlyText},
    {"/v1/messages/batches", "use POST /v1/messages for each request"},
    {"/v1/responses", "no response runs in the background; a client cancels it by disconnecting"},
    {"/apply-template", "use POST /v1/chat/completions/render"},
    {"/completion", "use POST /v1/completions"},
    {"/docs", "use GET /openapi.json"},
    {"/embedding", "use POST /v1/embeddings with an embedding model"},
    {"/generate", "use POST /v1/completions"},
    {"/healthz", "use GET /health"},
    {"/infill", "use POST /v1/completions"},
    {"/pooling", "use POST /v1/embeddings with an embedding model"},
    {"/props", "use GET /v1/models or GET /server_info"},
    {"/slots", "use GET /metrics"},
};

}  // namespace

// The tokenize workers are not in `health`: long texts can occupy them for more than
// `stall_timeout`, and a restart would not help.
ServerState::ServerState(EngineApi& the_engine, ServiceConfig given)
    : engine(the_engine),
      config(std::move(given)),
      admission(config.admission, config.keys.size()),
      metrics(static_cast<size_t>(engine.model_info().data_parallel_size)),
      responses(config.stored_responses),
      workers(config.num_workers),
      tokenize_workers(kNumTokenizeWorkers),
      writers(config.num_workers),
      grammar_workers(config.num_grammar_threads),
      grammars(grammar_workers, config.grammar_queue),
      health(config.stall_timeout,
             {{"parsing", &workers}, {"writing", &writers}, {"grammar", &grammar_workers}}),
      token_rates(static_cast<size_t>(engine.model_info().data_parallel_size)),
      calls(config.call_template != nullptr ? config.call_template.get()
                                            : find_dialect(config.tool_call_parser)),
      reasoning(config.reasoning_template != nullptr
                    ? config.reasoning_template.get()
                    : find_reasoning_dialect(config.reasoning_parser)),
      token_markers(markers_among(engine.added_tokens(), {calls, reasoning})),
      history_form(find_history_form(engine, calls, config.has_generic_tools)),
      max_prompt_bytes(max_context_bytes(engine)),
      system_fingerprint(fingerprint_of(engine, config)),
      model_digest(to_hexadecimal(sha256_of(system_fingerprint))) {}

RequestDefaults request_defaults(const ServerState& state) {
  RequestDefaults defaults;
  defaults.sampling = state.engine.sampling_defaults(SamplingFallback::kChat).params;
  defaults.sampling_of_ids = state.engine.sampling_defaults(SamplingFallback::kNone).params;
  defaults.chat_template = state.engine.chat_template();
  defaults.lacks_dialect = state.config.lacks_dialect;
  defaults.has_generic_tools = state.config.has_generic_tools;
  return defaults;
}

std::span<const Route> routes() {
  using enum Access;
  using enum RunsOn;
  using enum RouteKind;
  static constexpr Route kRoutes[] = {
      {"GET", "/health", kPublic, kTransport, get_health, kPolled},
      {"GET", "/ping", kPublic, kTransport, get_health, kPolled},
      {"GET", "/ready", kPublic, kTransport, get_ready, kPolled},
      {"GET", "/version", kNeedsKey, kTransport, get_version},
      {"GET", "/metrics", kNeedsKey, kWorker, get_metrics, kPolled},
      {"GET", "/load", kNeedsKey, kTransport, get_load, kPolled},
      {"GET", "/get_load", kNeedsKey, kTransport, get_router_load, kPolled},
      {"GET", "/v1/loads", kNeedsKey, kTransport, get_gateway_loads, kPolled},
      {"GET", "/server_info", kNeedsKey, kTransport, get_server_info},
      {"GET", "/get_server_info", kNeedsKey, kTransport, get_server_info},
      {"GET", "/kv_event_sources", kNeedsKey, kTransport, get_kv_event_sources},
      {"GET", "/openapi.json", kNeedsKey, kTransport, get_openapi},
      {"GET", "/v1/models", kNeedsKey, kTransport, get_models},
      {"GET", "/v1/models/{model}", kNeedsKey, kTransport, get_model},
      {"GET", "/tokenizer_info", kNeedsKey, kTransport, get_tokenizer_info},
      {"POST", "/tokenize", kNeedsKey, kTokenizer, post_tokenize},
      {"POST", "/detokenize", kNeedsKey, kTokenizer, post_detokenize},
      {"POST", "/v1/completions/render", kNeedsKey, kTokenizer, post_render_completions, kRender},
      {"POST", "/v1/chat/completions/render", kNeedsKey, kTokenizer, post_render_chat, kRender},
      {"POST", "/v1/completions", kNeedsKey, kWorker, post_completions, kGeneration},
      {"POST", "/v1/chat/completions", kNeedsKey, kWorker, post_chat_completions, kGeneration},
      {"POST", "/v1/responses", kNeedsKey, kWorker, post_responses, kGeneration},
      {"GET", "/v1/responses/{id}/input_items", kNeedsKey, kWorker, get_response_items},
      {"GET", "/v1/responses/{id}", kNeedsKey, kWorker, get_response},
      {"DELETE", "/v1/responses/{id}", kNeedsKey, kTransport, delete_response},
      {"POST", "/v1/embeddings", kNeedsKey, kWorker, post_embeddings, kEmbedding},
      {"POST", "/v1/score", kNeedsKey, kWorker, post_score, kGeneration},
      {"POST", "/v1/rerank", kNeedsKey, kWorker, post_rerank, kGeneration},
      {"POST", "/v2/rerank", kNeedsKey, kWorker, post_rerank, kGeneration},
      {"POST", "/v1/messages", kNeedsKey, kWorker, post_messages, kGeneration},
      {"POST", "/v1/messages/count_tokens", kNeedsKey, kTokenizer, post_count_tokens},
      {"POST", "/api/chat", kNeedsKey, kWorker, post_ollama_chat, kGeneration},
      {"POST", "/api/generate", kNeedsKey, kWorker, post_ollama_generate, kGeneration},
      {"POST", "/api/embed", kNeedsKey, kWorker, post_ollama_embed, kEmbedding},
      {"POST", "/api/embeddings", kNeedsKey, kWorker, post_ollama_embeddings, kEmbedding},
      {"POST", "/api/show", kNeedsKey, kWorker, post_ollama_show},
      {"POST", "/api/pull", kNeedsKey, kWorker, post_ollama_pull},
      {"GET", "/api/tags", kNeedsKey, kTransport, get_ollama_tags},
      {"GET", "/api/ps", kNeedsKey, kTransport, get_ollama_ps, kPolled},
      {"GET", "/api/version", kNeedsKey, kTransport, get_ollama_version},
  };
  return kRoutes;
}

std::optional<std::string_view> match_path(const Route& route, std::string_view path) {
  const size_t begin = route.path.find('{');
  if (begin == std::string_view::npos) {
    return path == route.path ? std::optional(std::string_view()) : std::nullopt;
  }
  const std::string_view suffix = route.path.substr(route.path.find('}') + 1);
  const bool matches = path.size() > begin + suffix.size() &&
                       path.starts_with(route.path.substr(0, begin)) && path.ends_with(suffix);
  if (!matches) return std::nullopt;
  const std::string_view parameter = path.substr(begin, path.size() - suffix.size() - begin);
  const bool may_have_slash = route.path.substr(begin).starts_with("{model}");
  if (!may_have_slash && parameter.find('/') != std::string_view::npos) return std::nullopt;
  return parameter;
}

std::string routed_path(std::string_view path) {
  const auto is_route = [](std::string_view candidate) {
    return std::ranges::any_of(
        routes(), [&](const Route& route) { return match_path(route, candidate).has_value(); });
  };
  std::string_view shorter = path;
  while (shorter.ends_with('/')) shorter.remove_suffix(1);
  if (is_route(shorter)) return std::string(shorter);
  std::string longer = "/v1";
  longer += shorter;
  return is_route(longer) ? longer : std::string(path);
}

std::string_view replacement_of(std::string_view path) {
  const auto is_below = [](std::string_view below, std::string_view root) {
    return below.starts_with(root) && (below.size() == root.size() || below[root.size()] == '/');
  };
  if (is_below(path, "/v1/v1")) return "the client's base URL has /v1 once too often; remove it";
  for (const Replacement& unserved : kReplacements) {
    if (is_below(path, unserved.path)) return unserved.text;
    if (unserved.path.starts_with("/v1") && is_below(path, unserved.path.substr(3))) {
      return unserved.text;
    }
  }
  return "GET /openapi.json lists all routes";
}

bool is_served(const ServerState& state, std::string_view model) {
  if (model.empty()) return false;
  return model == state.config.model_path ||
         std::ranges::any_of(state.config.model_names, [&](const std::string& name) {
           return is_same_model_name(name, model);
         });
}

bool refuse_unknown_model(const ServerState& state, RequestContext& context,
                          const std::string& model) {
  const std::vector<std::string>& names = state.config.model_names;
  if (model.empty() || is_served(state, model)) return false;
  context.refuse(make_api_error(404,
                                fmt::format("the model '{}' is not served; expected '{}'",
                                            clipped(model), fmt::join(names, "', '")),
                                "model", "model_not_found"));
  return true;
}

}  // namespace quire::server
