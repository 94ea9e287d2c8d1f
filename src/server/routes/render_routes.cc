// POST /v1/completions/render and /v1/chat/completions/render: the prompts of generation requests
// as token ids, which a router hashes or sends to another server. The responses are vLLM's
// GenerateRequest, for which Quire has no route of its own.
#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

void write_texts(std::string_view name, const std::vector<std::string>& texts, JsonWriter& json) {
  json.key(name);
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_sampling(const SamplingParams& sampling, JsonWriter& json) {
  json.begin_object();
  json.field("n", sampling.n);
  json.field("presence_penalty", double{sampling.presence_penalty});
  json.field("frequency_penalty", double{sampling.frequency_penalty});
  json.field("repetition_penalty", double{sampling.repetition_penalty});
  json.field("temperature", double{sampling.temperature});
  json.field("top_p", double{sampling.top_p});
  json.field("top_k", sampling.top_k);
  json.field("min_p", double{sampling.min_p});
  if (sampling.seed) json.field("seed", static_cast<int64_t>(*sampling.seed));
  if (!sampling.stop.empty()) write_texts("stop", sampling.stop, json);
  if (!sampling.stop_token_ids.empty()) {
    json.key("stop_token_ids");
    json.ids(sampling.stop_token_ids);
  }
  json.field("ignore_eos", sampling.ignore_eos);
  json.field("max_tokens", sampling.max_tokens);
  json.field("min_tokens", sampling.min_tokens);
  if (sampling.logprobs) json.field("logprobs", *sampling.logprobs);
  if (sampling.prompt_logprobs) json.field("prompt_logprobs", *sampling.prompt_logprobs);
  json.field("skip_special_tokens", sampling.skip_special_tokens);
  json.field("include_stop_str_in_output", sampling.include_stop_str_in_output);
  if (!sampling.logit_bias.empty()) {
    json.key("logit_bias");
    json.begin_object();
    for (const auto& [id, bias] : sampling.logit_bias) {
      json.field(std::string_view(std::to_string(id)), double{bias});
    }
    json.end_object();
  }
  if (!sampling.allowed_token_ids.empty()) {
    json.key("allowed_token_ids");
    json.ids(sampling.allowed_token_ids);
  }
  if (!sampling.bad_words.empty()) write_texts("bad_words", sampling.bad_words, json);
  json.end_object();
}

void write_prompt(const ServerState& state, const GenerationRequest& common, const Request& request,
                  const std::string& id, JsonWriter& json) {
  json.begin_object();
  json.field("request_id", id);
  json.key("token_ids");
  json.ids(request.prompt_token_ids);
  json.key("sampling_params");
  write_sampling(request.sampling, json);
  json.field("model", common.model.empty() ? state.config.model_names.front() : common.model);
  json.field("output_mode", "tokens");
  json.field("stream", common.streaming.stream);
  json.key("stream_options");
  if (common.streaming.stream) {
    json.begin_object();
    json.field("include_usage", common.streaming.include_usage);
    json.field("continuous_usage_stats", common.streaming.continuous_usage_stats);
    json.end_object();
  } else {
    json.null();
  }
  json.field("return_token_ids", common.return_token_ids);
  json.key("cache_salt");
  json.value_or_null(request.cache_salt);
  json.field("priority", request.priority);
  for (const char* name :
       {"token_offsets", "features", "content_parts", "reasoning_ended", "reasoning_parser_kwargs",
        "parse_context", "kv_transfer_params", "ec_transfer_params"}) {
    json.key(std::string_view(name));
    json.null();
  }
  json.end_object();
}

}  // namespace

void post_render_completions(ServerState& state, RequestContext&& context) {
  Parsed<CompletionRequest> parsed =
      parse_completion_request(context.request.body, request_defaults(state));
  if (parsed.error) return context.refuse(*parsed.error);
  CompletionRequest& completion = parsed.request;
  if (refuse_unknown_model(state, context, completion.model)) return;
  std::vector<Request> requests;
  if (const auto error = prepare_prompts(state, completion, requests)) {
    return context.refuse(*error);
  }
  const std::string id = "cmpl-" + context.log.id;
  JsonWriter json;
  json.begin_array();
  for (size_t i = 0; i < requests.size(); ++i) {
    write_prompt(state, completion, requests[i],
                 requests.size() == 1 ? id : fmt::format("{}-{}", id, i), json);
  }
  json.end_array();
  context.respond(json.take());
}

void post_render_chat(ServerState& state, RequestContext&& context) {
  Parsed<ChatRequest> parsed = parse_chat_request(context.request.body, request_defaults(state));
  if (parsed.error) return context.refuse(*parsed.error);
  ChatRequest& chat = parsed.request;
  report_ignored(context, chat);
  if (refuse_unknown_model(state, context, chat.model)) return;
  if (const auto error = prepare_chat(state, chat)) return context.refuse(*error);
  JsonWriter json;
  write_prompt(state, chat, chat.engine_request, "chatcmpl-" + context.log.id, json);
  context.respond(json.take());
}

}  // namespace quire::server
