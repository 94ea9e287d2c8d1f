#include <fmt/format.h>

#include "server/openai/answer_fields.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

class CompletionFields {
 public:
  CompletionFields(CompletionRequest& call, const RequestDefaults& defaults)
      : call_(call), defaults_(defaults), shared_(call, call.engine_request, defaults) {}

  FieldError read(std::string_view name, Element value);
  FieldError finish();

 private:
  static const FieldHandlers<CompletionFields>& handlers();
  FieldError read_prompts(const Path& path, Element value);
  FieldError read_prompt_list(const Path& path, simdjson::dom::array items);

  CompletionRequest& call_;
  const RequestDefaults& defaults_;
  AnswerFields shared_;
  bool has_no_tokens_ = false;  // max_tokens is 0
};

FieldError CompletionFields::read_prompt_list(const Path& path, simdjson::dom::array items) {
  for (const Element item : items) {
    const Path at(path, call_.prompts.size());
    CompletionPrompt prompt;
    if (item.is_string()) {
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(at, item, prompt.text));
    } else if (item.is_array()) {
      QUIRE_RETURN_IF_FIELD_ERROR(read_ids(at, item, prompt.token_ids));
    } else {
      return unexpected(at, item, "a string or a list of token ids");
    }
    call_.prompts.push_back(std::move(prompt));
  }
  return {};
}

// Text, token ids, or a list of either.
FieldError CompletionFields::read_prompts(const Path& path, Element value) {
  call_.prompts.clear();
  if (value.is_string()) {
    call_.prompts.emplace_back();
    return read_text(path, value, call_.prompts[0].text);
  }
  simdjson::dom::array items;
  if (value.get_array().get(items) || items.size() == 0) {
    return unexpected(path, value, "a string, a list of token ids, or a list of prompts");
  }
  if ((*items.begin()).is_number()) {
    call_.prompts.emplace_back();
    return read_ids(path, value, call_.prompts[0].token_ids);
  }
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(defaults_.limits.max_prompts), items));
  return read_prompt_list(path, items);
}

const FieldHandlers<CompletionFields>& CompletionFields::handlers() {
  using F = CompletionFields;
  using P = const Path&;
  using E = Element;
  static const FieldHandlers<CompletionFields> table = {
      {"prompt", [](F& f, P p, E v) { return f.read_prompts(p, v); }},
      {"suffix",
       [](F&, P p, E v) {
         std::string text;
         QUIRE_RETURN_IF_FIELD_ERROR(read_text(p, v, text));
         if (text.empty()) return FieldError();
         return unexpected(p, v, "none: this server completes prompts, it does not insert");
       }},
      {"echo", [](F& f, P p, E v) { return read_bool(p, v, f.call_.echo); }},
      {"logprobs",
       [](F& f, P p, E v) {
         int number = 0;
         QUIRE_RETURN_IF_FIELD_ERROR(read_int(p, v, 0, f.defaults_.limits.max_logprobs, number));
         f.call_.engine_request.sampling.logprobs = number;
         return FieldError();
       }},
      {"max_tokens",
       [](F& f, P p, E v) {
         int number = 0;
         QUIRE_RETURN_IF_FIELD_ERROR(read_int(p, v, 0, INT_MAX, number));
         f.has_no_tokens_ = number == 0;
         return f.has_no_tokens_ ? FieldError() : f.shared_.read(p.name, v);
       }},
  };
  return table;
}

FieldError CompletionFields::read(std::string_view name, Element value) {
  const auto found = handlers().find(name);
  return found == handlers().end() ? shared_.read(name, value)
                                   : found->second(*this, Path(name), value);
}

FieldError CompletionFields::finish() {
  if (call_.prompts.empty()) return field_error("prompt", "got none, expected one");
  if (has_no_tokens_ && !call_.echo) {
    return field_error("max_tokens", "got 0, expected at least 1, or echo");
  }
  call_.echo_only = has_no_tokens_;
  SamplingParams& sampling = call_.engine_request.sampling;
  if (call_.echo && sampling.logprobs && !sampling.prompt_logprobs) {
    sampling.prompt_logprobs = sampling.logprobs;
  }
  const int max_tokens = has_no_tokens_ ? 1 : defaults_.completion_max_tokens;
  return shared_.finish(max_tokens, call_.prompts.size());
}

FieldError parse_into(std::string_view body, const RequestDefaults& defaults,
                      CompletionRequest& call) {
  std::optional<JsonDocument> document;
  QUIRE_RETURN_IF_FIELD_ERROR(parse_body(body, defaults.limits.max_json_depth, document));
  CompletionFields fields(call, defaults);
  for (const auto& [name, value] : simdjson::dom::object(document->root())) {
    if (!value.is_null()) QUIRE_RETURN_IF_FIELD_ERROR(fields.read(name, value));
  }
  return fields.finish();
}

}  // namespace

Parsed<CompletionRequest> parse_completion_request(std::string_view body,
                                                   const RequestDefaults& defaults) {
  Parsed<CompletionRequest> parsed;
  parsed.error = parse_into(body, defaults, parsed.request);
  return parsed;
}

}  // namespace quire::server
