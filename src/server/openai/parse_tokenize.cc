#include "server/openai/conversation.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

FieldError read_fields(simdjson::dom::object fields, const RequestDefaults& defaults,
                       TokenizeRequest& request) {
  ConversationFields conversation_fields;
  std::optional<bool> special;
  bool has_prompt = false;
  for (const auto& [name, value] : fields) {
    if (value.is_null()) continue;
    const Path path(name);
    if (name == "model") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, request.model));
    } else if (name == "prompt") {
      has_prompt = true;
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, request.prompt));
    } else if (name == "add_special_tokens") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, special.emplace()));
    } else if (name == "return_token_strs") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, request.return_token_strs));
    } else if (std::optional<Element>* const field = conversation_fields.find(name)) {
      *field = value;
    }
  }
  if (has_prompt == conversation_fields.messages.has_value()) {
    return field_error("prompt", has_prompt
                                     ? "got both prompt and messages, expected one of them"
                                     : "got neither prompt nor messages, expected one of them");
  }
  request.add_special_tokens = special.value_or(has_prompt);  // a template renders its own
  if (has_prompt) return {};
  std::vector<Tool> tools;
  if (conversation_fields.tools) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_tools(*conversation_fields.tools, defaults.limits, tools));
  }
  Conversation conversation;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_conversation(conversation_fields, tools, defaults.limits, conversation));
  request.conversation = template_input(std::move(conversation));
  return {};
}

FieldError read_fields(simdjson::dom::object fields, const RequestDefaults&,
                       DetokenizeRequest& request) {
  bool has_tokens = false;
  for (const auto& [name, value] : fields) {
    if (value.is_null()) continue;
    if (name == "model") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(name), value, request.model));
    } else if (name == "tokens") {
      has_tokens = true;
      request.tokens.clear();
      simdjson::dom::array none;
      if (!value.get_array().get(none) && none.size() == 0) continue;
      QUIRE_RETURN_IF_FIELD_ERROR(read_ids(Path(name), value, request.tokens));
    }
  }
  return has_tokens ? FieldError()
                    : field_error("tokens", "got none, expected a list of token ids");
}

template <typename Body>
Parsed<Body> parse(std::string_view body, const RequestDefaults& defaults) {
  Parsed<Body> parsed;
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
