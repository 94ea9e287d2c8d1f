#include "server/openai/conversation.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

FieldError read_fields(simdjson::dom::object fields, const RequestDefaults& defaults,
                       TokenizeRequest& call) {
  ConversationFields conversation;
  std::optional<bool> special;
  bool has_prompt = false;
  for (const auto& [name, value] : fields) {
    if (value.is_null()) continue;
    const Path path(name);
    bool taken = false;
    if (name == "model") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, call.model));
    } else if (name == "prompt") {
      has_prompt = true;
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, call.prompt));
    } else if (name == "add_special_tokens") {
      special.emplace();
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, *special));
    } else if (name == "return_token_strs") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, call.return_token_strs));
    } else {
      QUIRE_RETURN_IF_FIELD_ERROR(conversation.read(name, value, taken));
    }
  }
  if (has_prompt == conversation.messages.has_value()) {
    return field_error("prompt", has_prompt
                                     ? "got both prompt and messages, expected one of them"
                                     : "got neither prompt nor messages, expected one of them");
  }
  call.add_special_tokens = special.value_or(has_prompt);  // a template renders its own
  if (has_prompt) return {};
  std::vector<Tool> tools;
  if (conversation.tools) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_tools(*conversation.tools, defaults.limits, tools));
  }
  Conversation rendered;
  QUIRE_RETURN_IF_FIELD_ERROR(
      render_variables(conversation, !tools.empty(), defaults.limits, rendered));
  call.template_variables = std::move(rendered.variables);
  call.continuation = continuation_of(std::move(rendered));
  return {};
}

FieldError read_fields(simdjson::dom::object fields, const RequestDefaults&,
                       DetokenizeRequest& call) {
  bool has_tokens = false;
  for (const auto& [name, value] : fields) {
    if (value.is_null()) continue;
    if (name == "model") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(name), value, call.model));
    } else if (name == "tokens") {
      has_tokens = true;
      call.tokens.clear();
      simdjson::dom::array none;
      if (!value.get_array().get(none) && none.size() == 0) continue;
      QUIRE_RETURN_IF_FIELD_ERROR(read_ids(Path(name), value, call.tokens));
    }
  }
  return has_tokens ? FieldError()
                    : field_error("tokens", "got none, expected a list of token ids");
}

template <typename Call>
Parsed<Call> parse(std::string_view body, const RequestDefaults& defaults) {
  Parsed<Call> parsed;
  std::optional<JsonDocument> document;
  parsed.error = parse_body(body, defaults.limits.max_json_depth, document);
  if (!parsed.error) parsed.error = read_fields(document->root(), defaults, parsed.request);
  return parsed;
}

}  // namespace

Parsed<TokenizeRequest> parse_tokenize_request(std::string_view body,
                                               const RequestDefaults& defaults) {
  return parse<TokenizeRequest>(body, defaults);
}

Parsed<DetokenizeRequest> parse_detokenize_request(std::string_view body,
                                                   const RequestDefaults& defaults) {
  return parse<DetokenizeRequest>(body, defaults);
}

}  // namespace quire::server
