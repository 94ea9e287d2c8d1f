#include <fmt/format.h>

#include <algorithm>
#include <array>

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

  static FieldTable<CompletionFields> table();
  auto parts() { return std::tie(request_, request_.engine_request.sampling); }
  FieldError read(std::string_view name, Element value);
  FieldError finish();

 private:
  FieldError read_prompt(const Path& path, Element value);
  FieldError read_max_tokens(const Path& path, Element value);

  CompletionRequest& request_;
  const RequestDefaults& defaults_;
  GenerationFields shared_;
  bool has_no_tokens_ = false;  // max_tokens is 0
};

FieldTable<CompletionFields> CompletionFields::table() {
  static constexpr auto kTable = std::to_array<BodyField<CompletionFields>>({
      {required({"prompt", schema(kPromptWords, "Prompts"), "At most 1024 prompts."}),
       call<&CompletionFields::read_prompt>},
      {{"echo", kBoolean, "The response begins with the prompt."}, into<&CompletionRequest::echo>},
      {{"max_tokens", integer(-1),
        "Default: 16. 0 is allowed only with echo; -1: the rest of the context."},
       call<&CompletionFields::read_max_tokens>},
      {{"logprobs", integer(0, kRequestLimits.max_logprobs),
        "Log probabilities of this many tokens at each position."},
       into<&SamplingParams::logprobs>},
      {only("suffix", R"("")", "no such field: this server does not insert text")},
  });
  return kTable;
}

FieldError CompletionFields::read(std::string_view name, Element value) {
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  return shared_.read_or_report(name, value);
}

FieldError CompletionFields::read_prompt(const Path& path, Element value) {
  return read_prompts(path, value, defaults_.limits.max_prompts, request_.prompts);
}

FieldError CompletionFields::read_max_tokens(const Path& path, Element value) {
  int number = 0;
  QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, -1, INT_MAX, number));
  has_no_tokens_ = number == 0;
  return has_no_tokens_ ? FieldError() : shared_.read("max_tokens", value);
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

ObjectSchema completion_schema() {
  ObjectSchema object = {"CompletionRequest"};
  object.add(CompletionFields::table());
  add_generation_fields(object);
  return object;
}

}  // namespace quire::server
