#include <array>
#include <tuple>

#include "server/openai/conversation.h"
#include "server/openai/generation_fields.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

class TokenizeFields {
 public:
  TokenizeFields(TokenizeRequest& request, const RequestDefaults& defaults)
      : request_(request), defaults_(defaults) {}

  static FieldTable<TokenizeFields> table();
  auto parts() { return std::tie(request_); }
  FieldError read(std::string_view name, Element value);
  FieldError finish();

 private:
  TokenizeRequest& request_;
  const RequestDefaults& defaults_;
  ConversationFields conversation_;
  std::optional<Element> prompt_;
  std::optional<Element> content_;
  std::optional<Element> special_;
};

constexpr Field kModelOfText = {"model", kTextValue, "A name from /v1/models."};

FieldTable<TokenizeFields> TokenizeFields::table() {
  static constexpr auto kTable = std::to_array<BodyField<TokenizeFields>>({
      {kModelOfText, into<&TokenizeRequest::model>},
      {{"prompt", kTextValue, "The text. A request has either a prompt or messages."},
       into<&TokenizeFields::prompt_>},
      {{"content", kTextValue, "llama.cpp: as `prompt`."}, into<&TokenizeFields::content_>},
      {{"add_special_tokens", kBoolean,
        "Adds the tokenizer's own tokens; the default for a prompt."},
       into<&TokenizeFields::special_>},
      {{"return_token_strs", kBoolean, "The response has the tokens as texts too."},
       into<&TokenizeRequest::return_token_strs>},
  });
  return kTable;
}

FieldError TokenizeFields::read(std::string_view name, Element value) {
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  const auto* const row = find_field(ConversationFields::table(), name);
  return row == nullptr ? FieldError() : row->read(conversation_, name, value);
}

FieldError TokenizeFields::finish() {
  const Path name(content_ ? "content" : "prompt");
  if (prompt_ && content_) {
    return field_error(name, "got both prompt and content, expected one of them");
  }
  const std::optional<Element>& text = content_ ? content_ : prompt_;
  if (text.has_value() == conversation_.messages.has_value()) {
    return field_error(name, text
                                 ? "got both " + name.text() + " and messages, expected one of them"
                                 : "got neither prompt nor messages, expected one of them");
  }
  request_.add_special_tokens = text.has_value();  // a template renders its own
  if (special_) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_bool("add_special_tokens", *special_, request_.add_special_tokens));
  }
  if (text) return read_text(name, *text, request_.prompt);
  std::vector<Tool> tools;
  std::vector<std::string> ignored;
  if (conversation_.tools) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_tools(*conversation_.tools, defaults_.limits, tools, ignored));
  }
  Conversation conversation;
  QUIRE_RETURN_IF_FIELD_ERROR(read_conversation(conversation_, tools, defaults_, conversation));
  request_.conversation = template_input(std::move(conversation));
  return {};
}

class DetokenizeFields {
 public:
  explicit DetokenizeFields(DetokenizeRequest& request) : request_(request) {}

  static FieldTable<DetokenizeFields> table();
  auto parts() { return std::tie(request_); }
  FieldError read(std::string_view name, Element value) {
    const auto* const row = find_field(table(), name);
    return row == nullptr ? FieldError() : row->read(*this, name, value);
  }
  FieldError finish() const {
    return has_tokens_ ? FieldError()
                       : field_error("tokens", "got none, expected a list of token ids");
  }

 private:
  FieldError read_tokens(const Path& path, Element value) {
    has_tokens_ = true;
    simdjson::dom::array none;
    if (!value.get_array().get(none) && none.size() == 0) return {};
    return read_ids(path, value, request_.tokens);
  }

  DetokenizeRequest& request_;
  bool has_tokens_ = false;
};

FieldTable<DetokenizeFields> DetokenizeFields::table() {
  static constexpr auto kTable = std::to_array<BodyField<DetokenizeFields>>({
      {kModelOfText, into<&DetokenizeRequest::model>},
      {required({"tokens", list_of("TokenId", SIZE_MAX), "The token ids; may be empty."}),
       call<&DetokenizeFields::read_tokens>},
  });
  return kTable;
}

}  // namespace

Parsed<TokenizeRequest> parse_tokenize_request(std::string_view body,
                                               const RequestDefaults& defaults) {
  Parsed<TokenizeRequest> parsed;
  parsed.error = read_body(body, defaults.limits, TokenizeFields(parsed.request, defaults));
  return parsed;
}

Parsed<DetokenizeRequest> parse_detokenize_request(std::string_view body,
                                                   const RequestDefaults& defaults) {
  Parsed<DetokenizeRequest> parsed;
  parsed.error = read_body(body, defaults.limits, DetokenizeFields(parsed.request));
  return parsed;
}

std::vector<ObjectSchema> openai_schemas() {
  std::vector<ObjectSchema> objects = generation_option_schemas();
  objects.push_back(completion_schema());
  objects.push_back(chat_schema());
  // The body of /tokenize is one of two objects.
  ObjectSchema text = {"TokenizeText"};
  text.add(required({"prompt", kTextValue, "The text."}));
  text.add(Field{"messages", {FieldType::Kind::kNull}});
  text.add(TokenizeFields::table());
  ObjectSchema chat = {"TokenizeChat"};
  chat.add(Field{"prompt", {FieldType::Kind::kNull}});
  chat.add(Field{"content", {FieldType::Kind::kNull}});
  chat.add(ConversationFields::table());
  chat.add(TokenizeFields::table());
  ObjectSchema detokenize = {"DetokenizeRequest"};
  detokenize.add(DetokenizeFields::table());
  for (ObjectSchema* object : {&text, &chat, &detokenize}) objects.push_back(std::move(*object));
  return objects;
}

}  // namespace quire::server
