#include <fmt/format.h>

#include <algorithm>

#include "server/openai/generation_fields.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

class CompletionFields {
 public:
  CompletionFields(CompletionRequest& request, const RequestDefaults& defaults)
      : request_(request),
        defaults_(defaults),
        shared_(request, request.engine_request, defaults) {}

  FieldError read(std::string_view name, Element value);
  FieldError finish();

 private:
  CompletionRequest& request_;
  const RequestDefaults& defaults_;
  GenerationFields shared_;
  bool has_no_tokens_ = false;  // max_tokens is 0
};

FieldError CompletionFields::read(std::string_view name, Element value) {
  const Path path(name);
  SamplingParams& sampling = request_.engine_request.sampling;
  if (name == "prompt")
    return read_prompts(path, value, defaults_.limits.max_prompts, request_.prompts);
  if (name == "echo") return read_bool(path, value, request_.echo);
  if (name == "logprobs") {
    return read_int(path, value, 0, defaults_.limits.max_logprobs, sampling.logprobs.emplace());
  }
  if (name == "suffix") {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, text));
    if (text.empty()) return {};
    return unexpected(path, value, "no such field: this server does not insert text");
  }
  if (name == "max_tokens") {
    int number = 0;
    QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, 0, INT_MAX, number));
    has_no_tokens_ = number == 0;
    if (has_no_tokens_) return {};
  }
  return shared_.read(name, value);
}

FieldError CompletionFields::finish() {
  if (request_.prompts.empty())
    return field_error("prompt", "got none, expected text or token ids");
  if (has_no_tokens_ && !request_.echo) {
    return field_error("max_tokens", "got 0 without echo, expected at least 1");
  }
  const bool has_texts = std::ranges::any_of(
      request_.prompts, [](const CompletionPrompt& prompt) { return prompt.token_ids.empty(); });
  if (!has_texts) shared_.replace_defaults(defaults_.sampling_of_ids);
  request_.echo_only = has_no_tokens_;
  SamplingParams& sampling = request_.engine_request.sampling;
  if (request_.echo && sampling.logprobs && !sampling.prompt_logprobs) {
    sampling.prompt_logprobs = sampling.logprobs;
  }
  const int max_tokens = has_no_tokens_ ? 1 : defaults_.completion_max_tokens;
  return shared_.finish(max_tokens, request_.prompts.size());
}

}  // namespace

Parsed<CompletionRequest> parse_completion_request(std::string_view body,
                                                   const RequestDefaults& defaults) {
  Parsed<CompletionRequest> parsed;
  parsed.error = read_body(body, defaults.limits, CompletionFields(parsed.request, defaults));
  return parsed;
}

}  // namespace quire::server
