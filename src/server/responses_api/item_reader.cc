#include "server/responses_api/item_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "server/openai/tool_kinds.h"
#include "server/responses_api/responses_request.h"

namespace quire::server {
namespace {

// Reads the joined text of a list of parts like {"type": "summary_text", "text": …}.
FieldError read_part_texts(const Path& path, Element value, std::string& out) {
  return read_objects(path, value, SIZE_MAX, [&](const Path& at, const auto& part) -> FieldError {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_required(at, part, "text", text));
    if (!out.empty()) out += '\n';
    out += text;
    return {};
  });
}

// Reads the text of reasoning: the content; if it is absent, its encoded form; if that is absent
// too, the summary.
FieldError read_reasoning_text(const Path& path, const simdjson::dom::object& fields,
                               std::string& out) {
  Element value;
  if (!fields["content"].get(value) && !value.is_null()) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_part_texts(Path(path, "content"), value, out));
    if (!out.empty()) return {};
  }
  Element encrypted;
  const bool is_encrypted = !fields["encrypted_content"].get(encrypted) && !encrypted.is_null();
  std::string_view text;
  if (is_encrypted && !encrypted.get_string().get(text) && text.starts_with(kReasoningPrefix)) {
    out = text.substr(kReasoningPrefix.size());
    return {};
  }
  if (!fields["summary"].get(value) && !value.is_null()) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_part_texts(Path(path, "summary"), value, out));
  }
  if (!out.empty() || !is_encrypted) return {};
  return field_error(Path(path, "encrypted_content"),
                     "got reasoning that this server did not write, expected its content or "
                     "summary; leave the item out");
}

// Returns the hosted tool of an item's type, which is the tool's type with this suffix.
std::optional<std::string_view> hosted_tool_of(std::string_view type, std::string_view suffix) {
  if (!type.ends_with(suffix)) return std::nullopt;
  type.remove_suffix(suffix.size());
  return is_hosted_tool(type) ? std::optional(type) : std::nullopt;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns a hosted tool's result as text. An image is only named, because the model reads text.
std::string result_text(std::string_view tool, Element value) {
  if (tool == "image_generation") return "an image";
  std::string_view text;
  return value.get_string().get(text) ? readable_json(value) : std::string(text);
}

}  // namespace

void ItemReader::add_message(std::string role, std::string content) {
  std::vector<TemplateMessage>& messages = chat_.messages;
  is_open_ = false;
  const bool joins = role == "system" && messages.size() == 1 && messages[0].role == "system";
  if (joins) {
    messages[0].content += "\n\n" + content;
  } else {
    messages.push_back({.role = std::move(role), .content = std::move(content)});
  }
}

FieldError ItemReader::add_result(const Path& id_path, std::string_view id, std::string content) {
  is_open_ = false;
  return chat_.add_tool_result(id_path, id, std::move(content));
}

FieldError ItemReader::read(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  std::string type = "message";
  Element type_value;
  if (!fields["type"].get(type_value) && !type_value.is_null()) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(path, "type"), type_value, type));
  }
  if (type == "message") return read_message(path, fields);
  if (type == "reasoning") return read_reasoning(path, fields);
  if (type == "function_call") return read_call(path, fields);
  if (type == "function_call_output") return read_call_output(path, fields);
  if (type == "custom_tool_call") return read_custom_call(path, fields);
  if (type == "custom_tool_call_output") return read_call_output(path, fields);
  if (const auto name = hosted_tool_of(type, "_call")) return read_hosted_call(path, fields, *name);
  if (hosted_tool_of(type, "_call_output")) return read_hosted_output(path, fields);
  // OpenAI's clients send these items back. They hold nothing that a model reads here: tools that
  // this server does not run, approvals of their calls, and a text that only OpenAI can decrypt.
  if (is_one_of(type, {"mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
                       "compaction"})) {
    ignore_part("input." + type, chat_.request.ignored);
    return {};
  }
  if (type == "item_reference") {
    return unexpected(Path(path, "type"), type_value,
                      "the item itself, or previous_response_id for a stored conversation");
  }
  return unexpected(Path(path, "type"), type_value,
                    "'message', 'reasoning', 'function_call', 'custom_tool_call', the call of a "
                    "hosted tool, or the output of one of these calls");
}

TemplateMessage& ItemReader::turn(bool begins_another) {
  if (!is_open_ || begins_another) chat_.messages.push_back({.role = "assistant"});
  is_open_ = true;
  return chat_.messages.back();
}

bool ItemReader::has_content_or_calls() const {
  if (!is_open_) return false;
  const TemplateMessage& last = chat_.messages.back();
  return !last.content.empty() || !last.tool_calls.empty();
}

FieldError ItemReader::read_message(const Path& path, const simdjson::dom::object& fields) {
  std::string role;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "role", role));
  if (role == "developer") role = "system";
  if (role != "user" && role != "assistant" && role != "system") {
    return unexpected(Path(path, "role"), fields["role"].value_unsafe(),
                      "'user', 'assistant', 'system' or 'developer'");
  }
  Element value;
  if (fields["content"].get(value)) {
    return missing(Path(path, "content"), "a string or a list of parts");
  }
  std::string content;
  QUIRE_RETURN_IF_FIELD_ERROR(read_content(Path(path, "content"), value, content));
  if (role == "assistant") {
    turn(has_content_or_calls()).content = std::move(content);
  } else {
    add_message(std::move(role), std::move(content));
  }
  return {};
}

FieldError ItemReader::read_reasoning(const Path& path, const simdjson::dom::object& fields) {
  std::string text;
  QUIRE_RETURN_IF_FIELD_ERROR(read_reasoning_text(path, fields, text));
  std::string& reasoning = turn(has_content_or_calls()).reasoning;
  if (!reasoning.empty()) reasoning += '\n';
  reasoning += text;
  return {};
}

FieldError ItemReader::read_call(const Path& path, const simdjson::dom::object& fields) {
  TemplateCall call;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "call_id", call.id));
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "name", call.name));
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_arguments(path, fields, "arguments", chat_.values, call.arguments, call.text));
  turn(/*begins_another=*/false);
  chat_.add_call(std::move(call));
  return {};
}

FieldError ItemReader::read_custom_call(const Path& path, const simdjson::dom::object& fields) {
  TemplateCall call;
  std::string input;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "call_id", call.id));
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "name", call.name));
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "input", input));
  call.arguments = custom_arguments(input);
  turn(/*begins_another=*/false);
  chat_.add_call(std::move(call));
  return {};
}

FieldError ItemReader::read_hosted_call(const Path& path, const simdjson::dom::object& fields,
                                        std::string_view name) {
  TemplateCall call;
  call.name = name;
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "call_id", call.id));
  if (call.id.empty()) QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "id", call.id));
  if (call.id.empty()) call.id = fmt::format("{}_{}", name, chat_.messages.size());
  std::vector<jinja::Dict::Entry> arguments;
  std::string result;
  for (const auto& [key, value] : fields) {
    if (is_absent(value) || is_one_of(key, {"type", "id", "call_id", "status"})) continue;
    if (is_one_of(key, {"output", "outputs", "result", "results"})) {
      result = result_text(name, value);
      continue;
    }
    jinja::Value argument;
    QUIRE_RETURN_IF_FIELD_ERROR(chat_.values.convert(Path(path, key), value, argument));
    add_entry(key, std::move(argument), arguments);
  }
  call.arguments = make_dict(std::move(arguments));
  const std::string id = call.id;
  turn(/*begins_another=*/false);
  chat_.add_call(std::move(call));
  return result.empty() ? FieldError() : add_result(Path(path, "id"), id, std::move(result));
}

FieldError ItemReader::read_call_output(const Path& path, const simdjson::dom::object& fields) {
  std::string id;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "call_id", id));
  Element output;
  const Path at(path, "output");
  if (fields["output"].get(output)) return missing(at, "a string or a list of parts");
  std::string content;
  QUIRE_RETURN_IF_FIELD_ERROR(read_content(at, output, content));
  return add_result(Path(path, "call_id"), id, std::move(content));
}

FieldError ItemReader::read_hosted_output(const Path& path, const simdjson::dom::object& fields) {
  std::string id;
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "call_id", id));
  if (id.empty()) QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "id", id));
  Element output;
  if (fields["output"].get(output)) return missing(Path(path, "output"), "the result of the call");
  return add_result(Path(path, "call_id"), id, result_text({}, output));
}

}  // namespace quire::server
