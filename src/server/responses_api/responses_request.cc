#include "server/responses_api/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "server/openai/chat_builder.h"
#include "server/openai/tool_kinds.h"
#include "server/responses_api/item_reader.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

constexpr std::string_view kLogprobs = "message.output_text.logprobs";
constexpr std::string_view kEncryptedReasoning = "reasoning.encrypted_content";
// The values of `include` that have no effect: they ask for results of hosted tools and for images,
// which no response of this server has.
constexpr auto kEmptyIncludes = std::to_array<std::string_view>(
    {"code_interpreter_call.outputs", "computer_call_output.output.image_url",
     "file_search_call.results", "message.input_image.image_url", "web_search_call.action.sources",
     "web_search_call.results"});

constexpr size_t kMaxIncludes = 32;
constexpr std::string_view kOtherLimit = "max_output_tokens, the name of this API";

std::string json_text(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

// Returns the item without null fields, and with an id and a type.
ItemText stored_item(const simdjson::dom::object& fields) {
  JsonWriter json;
  json.begin_object();
  const auto is_absent = [&](std::string_view name) {
    Element value;
    return fields[name].get(value) || value.is_null();
  };
  if (is_absent("id")) json.field("id", "item_" + random_id());
  if (is_absent("type")) json.field("type", "message");
  for (const auto& [name, value] : fields) {
    if (value.is_null()) continue;
    json.key(name);
    json.raw(simdjson::minify(value));
  }
  json.end_object();
  return std::make_shared<const std::string>(json.take());
}

ItemText stored_message(std::string_view text) {
  JsonWriter json;
  json.begin_object();
  json.field("id", "item_" + random_id());
  json.field("type", "message");
  json.field("role", "user");
  json.key("content");
  json.raw(R"([{"type":"input_text","text":)" + json_text(text) + "}]");
  json.end_object();
  return std::make_shared<const std::string>(json.take());
}

class ResponsesFields {
 public:
  ResponsesFields(ResponsesRequest& request, const RequestDefaults& defaults,
                  const StoredResponses& stored)
      : request_(request), stored_(stored), chat_(request.chat, defaults), items_(chat_) {
    request_.stores = stored.is_enabled;
  }

  static FieldTable<ResponsesFields> table();
  auto parts() { return std::tie(request_, request_.chat, chat_); }

  // Reads a field that is not null. Ignores unknown fields.
  FieldError read(std::string_view name, Element value);
  // Checks the fields against each other, after all of them were read.
  FieldError finish();

 private:
  // Keeps the JSON text of a field that the response repeats.
  FieldError repeat(const Path& path, std::string json, std::string& out);
  FieldError read_instructions(const Path& path, Element value);
  FieldError read_max_tokens(const Path& path, Element value);
  FieldError read_store(const Path& path, Element value);
  FieldError read_include(const Path& path, Element value);
  FieldError read_text_field(const Path& path, Element value);
  FieldError read_reasoning(const Path& path, Element value);
  FieldError read_metadata(const Path& path, Element value);
  FieldError read_tools(const Path& path, Element value);
  FieldError read_tool_choice(const Path& path, Element value);
  FieldError read_tool_name(const Path& path, Element value, std::string& name) const;
  FieldError read_previous();
  FieldError read_input();

  ResponsesRequest& request_;
  const StoredResponses& stored_;
  ChatBuilder chat_;
  ItemReader items_;
  std::optional<Element> input_;
  std::optional<Element> tool_choice_;
  std::string system_;  // the instructions
  std::optional<int> top_logprobs_;
  bool has_logprobs_ = false;
  size_t num_repeated_bytes_ = 0;
};

FieldError ResponsesFields::repeat(const Path& path, std::string json, std::string& out) {
  num_repeated_bytes_ += json.size();
  if (num_repeated_bytes_ > kMaxRepeatedBytes) {
    return field_error(path, fmt::format("got {} bytes in the fields that the response repeats, "
                                         "expected at most {}; /v1/chat/completions repeats none",
                                         num_repeated_bytes_, kMaxRepeatedBytes));
  }
  out = std::move(json);
  return {};
}

FieldTable<ResponsesFields> ResponsesFields::table() {
  using R = ResponsesFields;
  static constexpr auto kTable = std::to_array<BodyField<R>>({
      {required({"input", schema("a text, or a list of items", "ResponseInput"),
                 "The conversation, or its next part."}),
       into<&R::input_>},
      {{"instructions", kTextValue, "The system prompt."}, call<&R::read_instructions>},
      {{"max_output_tokens", integer(1), "Without it: the rest of the context."},
       call<&R::read_max_tokens>},
      {{"tools", list_of("ResponseTool", kRequestLimits.max_tools),
        "The model's chat template must use them. Hosted tools: named in `x-quire-ignored`."},
       call<&R::read_tools>},
      {{"tool_choice",
        schema("`none`, `auto`, `required`, a function or allowed_tools", "ResponseToolChoice"),
        "A choice that forces a call needs tools. A format of the text then has no effect."},
       into<&R::tool_choice_>},
      {kParallelToolCallsField, into<&ChatRequest::parallel_tool_calls>},
      {{"text", schema("an object", "ResponseText"), "The format of the output."},
       call<&R::read_text_field>},
      {{"reasoning", schema("an object", "ResponseReasoning"),
        "`effort` `none`: off. A template that does not read it: named in `x-quire-ignored`."},
       call<&R::read_reasoning>},
      {{"include",
        list_of(R"({"enum":["message.output_text.logprobs",
        "reasoning.encrypted_content"]})",
                kMaxIncludes),
        "`message.output_text.logprobs` and `reasoning.encrypted_content`."},
       call<&R::read_include>},
      {{"top_logprobs", integer(0, kRequestLimits.max_logprobs),
        "A value above 0 needs `message.output_text.logprobs` in include."},
       into<&R::top_logprobs_>},
      {{"metadata",
        schema("an object of at most 16 texts",
               R"({"type":"object","maxProperties":16,
                           "additionalProperties":{"type":"string"}})"),
        "The response repeats it."},
       call<&R::read_metadata>},
      {{"store", kBoolean, "true needs `--max-stored-responses`, with which it is the default."},
       call<&R::read_store>},
      {{"previous_response_id", kTextValue,
        "The id of a stored response, which this one continues."},
       into<&ResponsesRequest::previous_response_id>},
      {kTemplateKwargsField, call<&ChatBuilder::read_template_kwargs>},
      {only("truncation", R"("disabled")",
            "'disabled': this server drops no items; shorten the input")},
      {only("background", "false", kOnlyFalse)},
      {refused("conversation", "previous_response_id, or the whole conversation in input")},
      {refused("prompt", "instructions and input")},
      {refused("messages", "input, the name of this API")},
      {refused("max_tokens", kOtherLimit)},
      {refused("max_completion_tokens", kOtherLimit)},
  });
  return kTable;
}

FieldError ResponsesFields::read(std::string_view name, Element value) {
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  return chat_.read(name, value);
}

FieldError ResponsesFields::read_instructions(const Path& path, Element value) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, system_));
  return repeat(path, json_text(system_), request_.instructions);
}

FieldError ResponsesFields::read_max_tokens(const Path& path, Element value) {
  QUIRE_RETURN_IF_FIELD_ERROR(chat_.read_max_tokens(path, value));
  request_.max_output_tokens = simdjson::minify(value);
  return {};
}

FieldError ResponsesFields::read_store(const Path& path, Element value) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, request_.stores));
  if (!request_.stores || stored_.is_enabled) return {};
  return unexpected(path, value,
                    "false: this server stores no responses, unless its operator allows it");
}

FieldError ResponsesFields::read_include(const Path& path, Element value) {
  std::vector<std::string> names;
  QUIRE_RETURN_IF_FIELD_ERROR(read_texts(path, value, kMaxIncludes, names));
  for (const std::string& name : names) {
    if (name == kLogprobs) {
      has_logprobs_ = true;
    } else if (name == kEncryptedReasoning) {
      request_.shows_encrypted_reasoning = true;
    } else if (std::ranges::find(kEmptyIncludes, name) == kEmptyIncludes.end()) {
      return field_error(path, fmt::format("got '{}', expected '{}' or '{}'", clipped(name),
                                           kLogprobs, kEncryptedReasoning));
    }
  }
  return {};
}

// Reads {"format": {"type": "json_schema", "schema": …}, "verbosity": …}.
FieldError ResponsesFields::read_text_field(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  Element format;
  const bool has_format = !fields["format"].get(format) && !format.is_null();
  if (has_format) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_response_format(
        Path(path, "format"), format, chat_.defaults.limits, request_.chat.restriction));
  }
  JsonWriter json;
  json.begin_object();
  json.key("format");
  json.raw(has_format ? simdjson::minify(format) : R"({"type":"text"})");
  for (const auto& [name, field] : fields) {
    if (name == "format") continue;
    json.key(name);
    json.raw(simdjson::minify(field));
  }
  json.end_object();
  return repeat(path, json.take(), request_.text);
}

// `summary` has no effect, because reasoning items contain the whole reasoning.
FieldError ResponsesFields::read_reasoning(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  QUIRE_RETURN_IF_FIELD_ERROR(repeat(path, simdjson::minify(value), request_.reasoning));
  Element effort_value;
  if (fields["effort"].get(effort_value) || effort_value.is_null()) return {};
  const Path at(path, "effort");
  std::string effort;
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(at, effort_value, effort));
  chat_.set_reasoning_effort(at, effort);
  return {};
}

FieldError ResponsesFields::read_metadata(const Path& path, Element value) {
  constexpr size_t kMaxPairs = 16;
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  if (fields.size() > kMaxPairs) {
    return unexpected(path, value, fmt::format("at most {} pairs of strings", kMaxPairs));
  }
  for (const auto& [name, field] : fields) {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(path, name), field, text));
  }
  return repeat(path, simdjson::minify(value), request_.metadata);
}

FieldError ResponsesFields::read_tools(const Path& path, Element value) {
  const auto max_tools = static_cast<size_t>(chat_.defaults.limits.max_tools);
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_objects(path, value, max_tools, [&](const Path& at, const auto& fields) -> FieldError {
        std::string type;
        QUIRE_RETURN_IF_FIELD_ERROR(read_required(at, fields, "type", type));
        if (type == "function") return chat_.add_tool(at, fields, "parameters");
        if (type == "custom") return chat_.add_custom_tool(at, fields);
        if (!is_hosted_tool(type)) {
          return unexpected(Path(at, "type"), fields["type"].value_unsafe(),
                            "'function', 'custom' or a tool that OpenAI runs");
        }
        ignore_tool(type, request_.chat.ignored);
        return {};
      }));
  return repeat(path, simdjson::minify(value), request_.tools);
}

FieldError ResponsesFields::read_tool_choice(const Path& path, Element value) {
  constexpr std::string_view kExpected =
      "'none', 'auto', 'required', or an object of the type 'function', 'custom' or "
      "'allowed_tools'";
  QUIRE_RETURN_IF_FIELD_ERROR(repeat(path, simdjson::minify(value), request_.tool_choice));
  ToolChoice& choice = request_.chat.tool_choice;
  std::string_view name;
  if (!value.get_string().get(name)) {
    if (name == "required") return chat_.require_tool(path, value);
    if (name == "none") choice = ToolChoice::kNone;
    return name == "none" || name == "auto" ? FieldError() : unexpected(path, value, kExpected);
  }
  simdjson::dom::object fields;
  if (value.get_object().get(fields)) return unexpected(path, value, kExpected);
  std::string type;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "type", type));
  if (type == "allowed_tools") {
    const auto read_name = [this](const Path& at, Element tool, std::string& tool_name) {
      return read_tool_name(at, tool, tool_name);
    };
    return read_allowed_tools(path, fields, chat_.defaults.limits, read_name, request_.chat);
  }
  const Path name_path(path, "name");
  if (type != "function" && type != "custom") {
    return unexpected(Path(path, "type"), fields["type"].value_unsafe(),
                      "'function', 'custom' or 'allowed_tools'");
  }
  Element function;
  if (fields["name"].get(function)) return missing(name_path, "the name of one of the tools");
  return chat_.choose_tool(name_path, function);
}

// Reads {"type": "function", "name": …}, an element of allowed_tools; the name of a hosted tool is
// empty.
FieldError ResponsesFields::read_tool_name(const Path& path, Element value,
                                           std::string& name) const {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  std::string type;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "type", type));
  if (is_hosted_tool(type)) return {};
  if (type != "function" && type != "custom") {
    return unexpected(Path(path, "type"), fields["type"].value_unsafe(), "'function' or 'custom'");
  }
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "name", name));
  if (find_tool(request_.chat.tools, name) != nullptr) return {};
  return unexpected(Path(path, "name"), fields["name"].value_unsafe(),
                    "the name of one of the tools");
}

// Reads the conversation of the response that this one continues.
FieldError ResponsesFields::read_previous() {
  const Path path("previous_response_id");
  const std::string& id = request_.previous_response_id;
  if (id.empty()) return {};
  if (!stored_.is_enabled) {
    return field_error(path,
                       "got an id, expected none: this server stores no responses, unless its "
                       "operator allows it; send the whole conversation in input");
  }
  const std::shared_ptr<const StoredResponse> response = stored_.find(id);
  if (response == nullptr) {
    FieldError error = field_error(
        path, fmt::format("there is no stored response '{}'; it may have been removed to make "
                          "room, so send the whole conversation in input",
                          clipped(id)));
    error->code = "previous_response_not_found";
    return error;
  }
  std::string text;
  for (const auto* const items : {&response->items, &response->output}) {
    for (const ItemText& item : *items) {
      text += (text.empty() ? "[" : ",") + *item;
      if (request_.stores) request_.items.push_back(item);
    }
  }
  const size_t max_bytes = chat_.defaults.limits.max_stored_conversation;
  if (text.size() > max_bytes) {
    return field_error(
        path, fmt::format("got a conversation of {} bytes, expected at most {}; begin another one, "
                          "and send what it needs of this one in input",
                          text.size(), max_bytes));
  }
  const auto document = JsonDocument::parse(
      text + "]", "the stored response", {.max_depth = chat_.defaults.limits.max_json_depth + 2});
  if (!document.ok()) return api_error(document.status());
  size_t idx = 0;
  for (const Element item : simdjson::dom::array(document->root())) {
    QUIRE_RETURN_IF_FIELD_ERROR(items_.read(Path(path, idx++), item));
  }
  chat_.set_sources(path);
  return {};
}

FieldError ResponsesFields::read_input() {
  const Path path("input");
  if (!input_) return missing(path, "a string or a list of items");
  std::string_view text;
  if (!input_->get_string().get(text)) {
    items_.add_message("user", std::string(text));
    chat_.set_sources(path);
    if (request_.stores) request_.items.push_back(stored_message(text));
    return {};
  }
  if (!input_->is_array()) return unexpected(path, *input_, "a string or a list of items");
  simdjson::dom::array items;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, *input_, static_cast<size_t>(chat_.defaults.limits.max_messages), items));
  size_t idx = 0;
  for (const Element item : items) {
    const Path at(path, idx++);
    QUIRE_RETURN_IF_FIELD_ERROR(items_.read(at, item));
    chat_.set_sources(at);
    if (request_.stores) request_.items.push_back(stored_item(simdjson::dom::object(item)));
  }
  return {};
}

FieldError ResponsesFields::finish() {
  ChatRequest& chat = request_.chat;
  if (!system_.empty()) items_.add_message("system", std::move(system_));
  chat_.set_sources("instructions");
  QUIRE_RETURN_IF_FIELD_ERROR(read_previous());
  QUIRE_RETURN_IF_FIELD_ERROR(read_input());
  chat_.choose_by_default();
  if (tool_choice_) QUIRE_RETURN_IF_FIELD_ERROR(read_tool_choice("tool_choice", *tool_choice_));
  request_.top_logprobs = top_logprobs_.value_or(0);
  if (request_.top_logprobs > 0 && !has_logprobs_) {
    return field_error("top_logprobs", fmt::format("got {} without logprobs, expected include to "
                                                   "have '{}'",
                                                   request_.top_logprobs, kLogprobs));
  }
  if (has_logprobs_) chat.engine_request.sampling.logprobs = request_.top_logprobs;
  return chat_.finish("input", false);
}

}  // namespace

Parsed<ResponsesRequest> parse_responses_request(std::string_view body,
                                                 const RequestDefaults& defaults,
                                                 const StoredResponses& stored) {
  Parsed<ResponsesRequest> parsed;
  parsed.error =
      read_body(body, defaults.limits, ResponsesFields(parsed.request, defaults, stored));
  return parsed;
}

std::vector<ObjectSchema> responses_schemas() {
  ObjectSchema shared;
  add_generation_fields(shared);
  ObjectSchema responses = {"ResponsesRequest", "Sampling fields of ChatRequest are accepted too."};
  responses.add(ResponsesFields::table());
  responses.add(ChatBuilder::table());
  responses.add(shared, {"model", "temperature", "top_p", "stream"});
  return {std::move(responses)};
}

}  // namespace quire::server
