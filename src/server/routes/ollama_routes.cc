// POST /api/chat and /api/generate, and the routes that describe or fetch the model, as Ollama has
// them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/ascii.h"
#include "base/json_writer.h"
#include "base/utc_time.h"
#include "server/ollama_api/ollama_request.h"
#include "server/ollama_api/ollama_writer.h"
#include "server/openai/chat_builder.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

// --- Generation ---

// Returns the time for which the request waited for the model; 0 without a supervisor.
std::chrono::nanoseconds load_time_of(const http::Request& request) {
  constexpr int64_t kMost = int64_t{24} * 3600 * 1'000'000'000;  // a client may set the header
  const std::string_view text = request.header(kLoadTimeField);
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::chrono::nanoseconds(std::clamp<int64_t>(number, 0, kMost));
}

void generate_from(ServerState& state, RequestContext&& context, OllamaUse use) {
  Parsed<OllamaRequest> parsed =
      parse_ollama_request(context.request.body, request_defaults(state), use,
                           {.max_model_len = state.engine.model_info().max_model_len,
                            .reasons = state.reasoning != nullptr});
  if (parsed.error) return context.refuse(*parsed.error);
  OllamaRequest& request = parsed.request;
  ChatRequest& chat = request.chat;
  const std::string model = chat.model.empty() ? state.config.model_names.front() : chat.model;
  if (request.only_loads) {
    if (refuse_unknown_model(state, context, chat.model)) return;
    report_ignored(context, chat);
    return context.respond(ollama_without_prompt(use, model, request.unloads ? "unload" : "load"));
  }
  const OllamaReply reply = {.use = use,
                             .model = model,
                             .is_stream = chat.streaming.stream,
                             .shows_thinking = chat.include_reasoning,
                             .num_logprobs = chat.engine_request.sampling.logprobs,
                             .arrived = context.log.arrived,
                             .load_time = load_time_of(context.request)};
  const auto make_writer = [reply](const auto& /*request*/, ResponseInfo&& info) {
    return make_ollama_writer(reply, std::move(info));
  };
  const std::string id = context.log.id;
  if (!request.raw_prompt) {
    return generate_chat(state, std::move(context), std::move(chat), id, make_writer);
  }
  CompletionRequest completion;
  static_cast<GenerationRequest&>(completion) = std::move(static_cast<GenerationRequest&>(chat));
  completion.engine_request = std::move(chat.engine_request);
  completion.prompts.push_back({std::move(*request.raw_prompt), {}});
  report_ignored(context, completion);
  generate_completion(state, std::move(context), std::move(completion), id, make_writer);
}

// --- The model ---

// Returns "llama" for "LlamaForCausalLM".
std::string family_of(const ModelInfo& info) {
  const std::string_view architecture = info.architecture;
  std::string family;
  for (const char c : architecture.substr(0, architecture.find("For"))) family += to_lower(c);
  return family;
}

// Returns "4.3B" for 4,300,000,000.
std::string parameter_size(int64_t num_parameters) {
  constexpr double kThousand = 1e3;
  constexpr double kMillion = 1e6;
  constexpr double kBillion = 1e9;
  const auto number = static_cast<double>(num_parameters);
  if (number >= kBillion) return fmt::format("{:.1f}B", number / kBillion);
  if (number >= kMillion) return fmt::format("{:.2f}M", number / kMillion);
  return fmt::format("{:.2f}K", number / kThousand);
}

std::string start_time(const ServerState& state) {
  return utc_time(
      std::chrono::system_clock::time_point(std::chrono::seconds(state.config.started_at)));
}

void write_details(const ServerState& state, JsonWriter& json) {
  const ModelInfo& info = state.engine.model_info();
  const std::string& level = info.gguf_mixture;
  const std::string family = family_of(info);
  json.key("details");
  json.begin_object();
  json.field("parent_model", "");
  json.field("format", info.file_format);
  json.field("family", family);
  json.key("families");
  json.begin_array();
  json.value(family);
  json.end_array();
  json.field("parameter_size", parameter_size(info.num_parameters));
  json.field("quantization_level", level.empty() ? info.weight_dtype : level);
  json.end_object();
}

// Writes {"models":[…]} with one entry per name; `write_more` adds members to each.
template <typename WriteMore>
void respond_with_models(const ServerState& state, RequestContext& context,
                         const WriteMore& write_more) {
  const ModelInfo& info = state.engine.model_info();
  JsonWriter json;
  json.begin_object();
  json.key("models");
  json.begin_array();
  for (const std::string& name : state.config.model_names) {
    json.begin_object();
    json.field("name", tagged_name(name));
    json.field("model", tagged_name(name));
    json.field("size", info.weight_bytes);
    json.field("digest", state.model_digest);
    write_details(state, json);
    write_more(json);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  context.respond(json.take());
}

// One line per parameter that a Modelfile would set.
std::string parameter_lines(const SamplingParams& sampling) {
  return fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}\nrepeat_penalty {}",
                     sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p,
                     sampling.repetition_penalty);
}

void write_capabilities(const ServerState& state, JsonWriter& json) {
  json.key("capabilities");
  json.begin_array();
  json.value(state.engine.model_info().embedding_size > 0 ? "embedding" : "completion");
  const RequestDefaults defaults = request_defaults(state);
  const bool takes_tools = defaults.has_generic_tools || !template_ignores(defaults, "tools");
  if (state.calls != nullptr && takes_tools) json.value("tools");
  if (state.reasoning != nullptr) json.value("thinking");
  json.end_array();
}

void write_model_info(const ModelInfo& info, JsonWriter& json) {
  const std::string family = family_of(info);
  json.key("model_info");
  json.begin_object();
  json.field("general.architecture", family);
  json.field("general.parameter_count", info.num_parameters);
  json.field(std::string_view(family + ".context_length"), info.max_model_len);
  json.field(std::string_view(family + ".vocab_size"), info.vocab_size);
  json.end_object();
}

}  // namespace

void post_ollama_chat(ServerState& state, RequestContext&& context) {
  generate_from(state, std::move(context), OllamaUse::kChat);
}

void post_ollama_generate(ServerState& state, RequestContext&& context) {
  generate_from(state, std::move(context), OllamaUse::kGenerate);
}

void post_ollama_show(ServerState& state, RequestContext&& context) {
  const Parsed<std::string> parsed =
      parse_ollama_show(context.request.body, request_defaults(state).limits);
  if (parsed.error) return context.refuse(*parsed.error);
  if (refuse_unknown_model(state, context, parsed.request)) return;
  const ModelInfo& info = state.engine.model_info();
  JsonWriter json;
  json.begin_object();
  json.field("parameters", parameter_lines(request_defaults(state).sampling));
  json.field("template", state.engine.chat_template());
  write_details(state, json);
  write_model_info(info, json);
  write_capabilities(state, json);
  json.field("modified_at", start_time(state));
  json.end_object();
  context.respond(json.take());
}

void post_ollama_pull(ServerState& state, RequestContext&& context) {
  const auto is_named = [&](std::string_view model) { return is_served(state, model); };
  const std::vector<std::string>& names = state.config.model_names;
  OllamaPulled pulled;
  if (const auto error =
          pull_for_ollama(context.request.body, request_defaults(state).limits,
                          fmt::format("'{}'", fmt::join(names, "', '")), is_named, pulled)) {
    return context.refuse(*error);
  }
  context.respond(std::move(pulled.body), std::move(pulled.content_type));
}

void get_ollama_tags(ServerState& state, RequestContext&& context) {
  respond_with_models(state, context,
                      [&](JsonWriter& json) { json.field("modified_at", start_time(state)); });
}

// The model never expires, which clients recognize by a date in the far future.
void get_ollama_ps(ServerState& state, RequestContext&& context) {
  const ModelInfo& info = state.engine.model_info();
  respond_with_models(state, context, [&](JsonWriter& json) {
    json.field("size_vram", info.on_gpu ? info.weight_bytes : 0);
    json.field("context_length", info.max_model_len);
    json.field("expires_at", kOllamaNever);
  });
}

void get_ollama_version(ServerState& state, RequestContext&& context) {
  JsonWriter json;
  json.begin_object();
  json.field("version", kOllamaVersion);
  json.field("quire_version", state.config.version);
  json.end_object();
  context.respond(json.take());
}

}  // namespace quire::server
