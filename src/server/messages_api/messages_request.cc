#include "server/messages_api/messages_request.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "server/openai/chat_builder.h"
#include "server/openai/tool_kinds.h"

namespace quire::server {
namespace {

void join(std::string_view text, std::string& out) {
  if (!out.empty() && !text.empty()) out += '\n';
  out += text;
}

// Removes the line that Claude Code puts before its system prompt. The line differs in every
// request, so the prefix cache would find nothing after it.
void remove_billing_header(std::string& system) {
  if (!system.starts_with("x-anthropic-billing-header:")) return;
  const size_t end = system.find('\n');
  const size_t prompt = end == std::string::npos ? end : system.find_first_not_of("\r\n", end);
  system.erase(0, prompt);
}

class MessagesFields {
 public:
  MessagesFields(ChatRequest& request, const RequestDefaults& defaults, MessagesUse use)
      : request_(request), chat_(request, defaults), use_(use) {
    request_.include_reasoning = false;
  }

  static FieldTable<MessagesFields> table();
  static FieldTable<MessagesFields> config_table();  // of output_config
  auto parts() { return std::tie(request_, chat_); }

  // Reads a field that is not null. Ignores unknown fields.
  FieldError read(std::string_view name, Element value);
  // Checks the fields against each other, after all of them were read.
  FieldError finish();

 private:
  FieldError read_max_tokens(const Path& path, Element value);
  FieldError read_system(const Path& path, Element value);
  FieldError read_stops(const Path& path, Element value);
  FieldError read_thinking(const Path& path, Element value);
  FieldError read_output_config(const Path& path, Element value);
  FieldError read_effort(const Path& path, Element value);
  FieldError read_format(const Path& path, Element value);
  FieldError read_tools(const Path& path, Element value);
  FieldError read_tool_choice(const Path& path, Element value);
  FieldError read_messages(const Path& path, Element value);
  FieldError read_message(const Path& path, const simdjson::dom::object& fields);
  FieldError read_block(const Path& path, const simdjson::dom::object& fields,
                        const std::string& role);
  FieldError read_thinking_block(const Path& path, const simdjson::dom::object& fields);
  FieldError read_tool_use(const Path& path, const simdjson::dom::object& fields);
  FieldError read_tool_result(const Path& path, const simdjson::dom::object& fields);
  FieldError read_hosted_result(const Path& path, const simdjson::dom::object& fields);

  // Returns the last message if it has this role; otherwise adds one.
  TemplateMessage& message_of(const std::string& role) {
    if (chat_.messages.empty() || chat_.messages.back().role != role) {
      chat_.messages.push_back({.role = role});
    }
    return chat_.messages.back();
  }

  ChatRequest& request_;
  ChatBuilder chat_;
  const MessagesUse use_;
  std::optional<Element> messages_;
  std::optional<Element> tool_choice_;
  std::optional<bool> thinks_ = false;  // absent: the template's default
  std::string system_;
  int budget_tokens_ = 0;  // 0: not given
  bool has_max_tokens_ = false;
};

FieldTable<MessagesFields> MessagesFields::table() {
  using M = MessagesFields;
  static constexpr auto kTable = std::to_array<BodyField<M>>({
      {required({"messages", list_of("MessageParam", kRequestLimits.max_messages, 1),
                 "If the last message is the assistant's, the response continues its text."}),
       into<&M::messages_>},
      {required({"max_tokens", integer(1), "The most tokens to generate."}),
       call<&M::read_max_tokens>},
      {{"system", schema("a text, or a list of text blocks", "MessagesSystem"),
        "The system prompt."},
       call<&M::read_system>},
      {{"stop_sequences", list_of(R"({"type":"string","minLength":1})", kRequestLimits.max_stops),
        "Texts that end the output; at most 4096 bytes in all."},
       call<&M::read_stops>},
      {{"thinking", schema("an object", "MessagesThinking"),
        "Without it, templates that have `enable_thinking` switch reasoning off."},
       call<&M::read_thinking>},
      {{"output_config", schema("an object", "MessagesOutputConfig"),
        "The effort of the reasoning, and the format of the output."},
       call<&M::read_output_config>},
      {{"tools", list_of("MessagesTool", kRequestLimits.max_tools),
        "The model's chat template must use them. Hosted tools: named in `x-quire-ignored`."},
       call<&M::read_tools>},
      {{"tool_choice", schema("an object", "MessagesToolChoice"),
        "`auto`, `any`, `none`, or `tool` with a name."},
       into<&M::tool_choice_>},
      {kTemplateKwargsField, call<&ChatBuilder::read_template_kwargs>},
      {only("mcp_servers", "[]", "none: this server runs no tools of its own")},
      {without_effect("metadata")},
  });
  return kTable;
}

FieldTable<MessagesFields> MessagesFields::config_table() {
  static constexpr auto kTable = std::to_array<BodyField<MessagesFields>>({
      {{"effort", kTextValue,
        "`none`: off. A template that does not read it: named in `x-quire-ignored`."},
       call<&MessagesFields::read_effort>},
      {{"format", schema("an object", "MessagesFormat"), "`json_schema` with a schema."},
       call<&MessagesFields::read_format>},
  });
  return kTable;
}

FieldError MessagesFields::read(std::string_view name, Element value) {
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  return chat_.read(name, value);
}

FieldError MessagesFields::read_max_tokens(const Path& path, Element value) {
  has_max_tokens_ = true;
  return chat_.read_max_tokens(path, value);
}

FieldError MessagesFields::read_system(const Path& path, Element value) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_content(path, value, system_));
  remove_billing_header(system_);
  return {};
}

FieldError MessagesFields::read_stops(const Path& path, Element value) {
  std::vector<std::string> stops;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_texts(path, value, static_cast<size_t>(chat_.defaults.limits.max_stops), stops));
  return chat_.read_sampling(path, "stop", value);
}

FieldError MessagesFields::read_thinking(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  std::string type;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "type", type));
  if (type == "disabled") return {};
  if (type != "enabled" && type != "adaptive") {
    return unexpected(Path(path, "type"), fields["type"].value_unsafe(),
                      "'enabled', 'adaptive' or 'disabled'");
  }
  thinks_ = type == "enabled" ? std::optional(true) : std::nullopt;
  Element display;
  std::string_view shown;
  request_.include_reasoning =
      fields["display"].get(display) || display.get_string().get(shown) || shown != "omitted";
  if (type != "enabled") return {};
  constexpr int kLeastBudget = 1024;
  Element budget;
  const Path budget_path(path, "budget_tokens");
  if (fields["budget_tokens"].get(budget)) return missing(budget_path, "a number of tokens");
  return read_int(budget_path, budget, kLeastBudget, INT_MAX, budget_tokens_);
}

FieldError MessagesFields::read_output_config(const Path& path, Element value) {
  return read_members(config_table(), *this, path, value);
}

FieldError MessagesFields::read_effort(const Path& path, Element value) {
  std::string effort;
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, effort));
  if (effort == "none") thinks_ = false;
  chat_.set_reasoning_effort(path, effort);
  return {};
}

FieldError MessagesFields::read_format(const Path& path, Element value) {
  return read_response_format(path, value, chat_.defaults.limits, request_.restriction);
}

FieldError MessagesFields::read_tools(const Path& path, Element value) {
  const auto max_tools = static_cast<size_t>(chat_.defaults.limits.max_tools);
  return read_objects(
      path, value, max_tools, [&](const Path& at, const auto& fields) -> FieldError {
        Element type;
        std::string_view name;
        if (!fields["type"].get(type) && !type.is_null() &&
            (type.get_string().get(name) || name != "custom")) {
          if (!is_hosted_tool(name)) {
            return unexpected(Path(at, "type"), type,
                              "'custom', with a schema, or a tool that Anthropic defines");
          }
          ignore_tool(name, request_.ignored);
          return {};
        }
        if (fields["input_schema"].error() != simdjson::SUCCESS) {
          return missing(Path(at, "input_schema"), "a JSON schema");
        }
        return chat_.add_tool(at, fields, "input_schema");
      });
}

FieldError MessagesFields::read_tool_choice(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  Element parallel;
  if (!fields["disable_parallel_tool_use"].get(parallel) && !parallel.is_null()) {
    bool is_disabled = false;
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_bool(Path(path, "disable_parallel_tool_use"), parallel, is_disabled));
    request_.parallel_tool_calls = !is_disabled;
  }
  std::string type;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "type", type));
  const Path type_path(path, "type");
  const Element type_value = fields["type"].value_unsafe();
  if (type == "auto") return {};
  if (type == "any") return chat_.require_tool(type_path, type_value);
  if (type == "none") {
    request_.tool_choice = ToolChoice::kNone;
    return {};
  }
  if (type != "tool") return unexpected(type_path, type_value, "'auto', 'any', 'tool' or 'none'");
  Element name;
  const Path name_path(path, "name");
  if (fields["name"].get(name)) return missing(name_path, "the name of one of the tools");
  return chat_.choose_tool(name_path, name);
}

FieldError MessagesFields::read_thinking_block(const Path& path,
                                               const simdjson::dom::object& fields) {
  std::string text;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "thinking", text));
  join(text, message_of("assistant").reasoning);
  return {};
}

FieldError MessagesFields::read_tool_use(const Path& path, const simdjson::dom::object& fields) {
  TemplateCall call;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "id", call.id));
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "name", call.name));
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_arguments(path, fields, "input", chat_.values, call.arguments, call.text));
  message_of("assistant");  // add_call() adds to this message
  chat_.add_call(std::move(call));
  return {};
}

FieldError MessagesFields::read_tool_result(const Path& path, const simdjson::dom::object& fields) {
  std::string id;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "tool_use_id", id));
  std::string text;
  Element content;
  if (!fields["content"].get(content)) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_content(Path(path, "content"), content, text));
  }
  return chat_.add_tool_result(Path(path, "tool_use_id"), id, std::move(text));
}

// Reads the result of a tool that Anthropic ran, such as "web_search_tool_result".
FieldError MessagesFields::read_hosted_result(const Path& path,
                                              const simdjson::dom::object& fields) {
  std::string id;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "tool_use_id", id));
  Element content;
  std::string_view text;
  if (fields["content"].get(content)) return missing(Path(path, "content"), "the result");
  return chat_.add_tool_result(
      Path(path, "tool_use_id"), id,
      content.get_string().get(text) ? readable_json(content) : std::string(text));
}

FieldError MessagesFields::read_block(const Path& path, const simdjson::dom::object& fields,
                                      const std::string& role) {
  std::string type;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "type", type));
  if (type == "text") {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "text", text));
    join(text, message_of(role).content);
    return {};
  }
  const bool is_assistant = role == "assistant";
  const bool is_call = type == "tool_use" || type == "server_tool_use" || type == "mcp_tool_use";
  if (is_assistant && is_call) return read_tool_use(path, fields);
  if (is_assistant && type == "thinking") return read_thinking_block(path, fields);
  if (is_assistant && type == "redacted_thinking") {  // only Anthropic can decrypt it
    ignore_part("messages." + type, request_.ignored);
    return {};
  }
  if (role == "user" && type == "tool_result") return read_tool_result(path, fields);
  if (role != "system" && type.ends_with("_tool_result")) return read_hosted_result(path, fields);
  return unexpected(Path(path, "type"), fields["type"].value_unsafe(),
                    is_assistant     ? "'text', 'tool_use' or 'thinking'"
                    : role == "user" ? "'text' or 'tool_result', the types that the model reads"
                                     : "'text'");
}

FieldError MessagesFields::read_message(const Path& path, const simdjson::dom::object& fields) {
  std::string role;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "role", role));
  if (role != "user" && role != "assistant" && role != "system") {
    return unexpected(Path(path, "role"), fields["role"].value_unsafe(),
                      "'user', 'assistant' or 'system'");
  }
  Element content;
  const Path at(path, "content");
  constexpr std::string_view kExpected = "a string or a list of blocks";
  if (fields["content"].get(content)) return missing(at, kExpected);
  std::string_view text;
  if (!content.get_string().get(text)) {
    join(text, message_of(role).content);
    return {};
  }
  if (!content.is_array()) return unexpected(at, content, kExpected);
  return read_objects(at, content, SIZE_MAX, [&](const Path& block_path, const auto& block) {
    return read_block(block_path, block, role);
  });
}

FieldError MessagesFields::read_messages(const Path& path, Element value) {
  simdjson::dom::array messages;
  if (!value.get_array().get(messages) && messages.size() == 0) {
    return unexpected(path, value, "at least one message");
  }
  const auto max_messages = static_cast<size_t>(chat_.defaults.limits.max_messages);
  return read_objects(path, value, max_messages,
                      [&](const Path& at, const auto& fields) -> FieldError {
                        QUIRE_RETURN_IF_FIELD_ERROR(read_message(at, fields));
                        chat_.set_sources(at);
                        return {};
                      });
}

FieldError MessagesFields::finish() {
  if (!messages_) return missing("messages", "at least one message");
  if (!has_max_tokens_ && use_ == MessagesUse::kGenerate) {
    return missing("max_tokens", "the largest number of tokens to generate");
  }
  const int max_tokens = request_.engine_request.sampling.max_tokens;
  if (has_max_tokens_ && budget_tokens_ >= max_tokens) {
    return field_error("thinking.budget_tokens",
                       fmt::format("got {}, expected less than max_tokens, which is {}",
                                   budget_tokens_, max_tokens));
  }
  if (!system_.empty()) {
    chat_.messages.push_back({.role = "system", .content = std::move(system_)});
  }
  chat_.set_sources("system");
  QUIRE_RETURN_IF_FIELD_ERROR(read_messages("messages", *messages_));
  chat_.choose_by_default();
  if (tool_choice_) QUIRE_RETURN_IF_FIELD_ERROR(read_tool_choice("tool_choice", *tool_choice_));
  if (thinks_) chat_.set_thinking(*thinks_);
  const bool continues = !chat_.messages.empty() && chat_.messages.back().role == "assistant";
  if (continues && !chat_.messages.back().tool_calls.empty()) {
    return field_error("messages",
                       "got a tool_use without a result at the end, expected a message of the "
                       "user with its tool_result");
  }
  return chat_.finish("messages", continues);
}

}  // namespace

Parsed<ChatRequest> parse_messages_request(std::string_view body, const RequestDefaults& defaults,
                                           MessagesUse use) {
  Parsed<ChatRequest> parsed;
  parsed.error = read_body(body, defaults.limits, MessagesFields(parsed.request, defaults, use));
  return parsed;
}

std::vector<ObjectSchema> messages_schemas() {
  ObjectSchema shared;
  add_generation_fields(shared);
  ObjectSchema config = {"MessagesOutputConfig"};
  config.add(MessagesFields::config_table());
  ObjectSchema messages = {"MessagesRequest", "Sampling fields of ChatRequest are accepted too."};
  messages.add(MessagesFields::table());
  messages.add(ChatBuilder::table());
  messages.add(shared, {"model", "temperature", "top_p", "top_k", "stream"});
  ObjectSchema count = {"CountTokensRequest"};
  count.add(messages,
            {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"});
  return {std::move(config), std::move(messages), std::move(count)};
}

}  // namespace quire::server
