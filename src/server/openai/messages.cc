#include "server/openai/messages.h"

#include <fmt/format.h>

#include "server/openai/continuation.h"
#include "server/openai/json_text.h"

namespace quire::server {
namespace {

// Reads the text of one content part. Refuses other kinds (images, audio, files) by name.
FieldError read_part(const Path& path, Element part, std::string& out) {
  if (part.is_string()) return read_text(path, part, out);
  simdjson::dom::object fields;
  if (part.get_object().get(fields)) return unexpected(path, part, "a text part");
  std::string_view type = "text";
  Element value;
  if (!fields["type"].get(value) && value.get_string().get(type)) {
    return unexpected(Path(path, "type"), value, "'text'");
  }
  const bool is_refusal = type == "refusal";
  if (type != "text" && type != "input_text" && type != "output_text" && !is_refusal) {
    return unexpected(Path(path, "type"), value, "'text': the model reads nothing else");
  }
  const std::string_view name = is_refusal ? "refusal" : "text";
  if (fields[name].get(value)) return missing(Path(path, name), "a string");
  return read_text(Path(path, name), value, out);
}

// Reads content that is a string, null or a list of parts. Parts are joined by newlines, as in
// vLLM.
FieldError read_content(const Path& path, Element value, std::string& out) {
  out.clear();
  if (value.is_null()) return {};
  if (value.is_string()) return read_text(path, value, out);
  simdjson::dom::array parts;
  if (value.get_array().get(parts)) return unexpected(path, value, "a string or a list of parts");
  size_t idx = 0;
  for (const Element part : parts) {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_part(Path(path, idx), part, text));
    if (idx++ > 0) out += '\n';
    out += text;
  }
  return {};
}

// Appends a call's arguments as an object, which templates expect; OpenAI's clients send an
// object's text.
FieldError append_arguments(const Path& path, Element value, const RequestLimits& limits,
                            std::string& out) {
  std::string_view text;
  if (value.get_string().get(text)) {
    if (!value.is_object()) return unexpected(path, value, "a JSON object, or its text");
    out += simdjson::to_string(value);
    return {};
  }
  if (text.empty()) {
    out += "{}";
    return {};
  }
  const auto document =
      JsonDocument::parse(text, "arguments", {.max_depth = limits.max_json_depth});
  if (!document.ok() || !document->root().is_object()) {
    return unexpected(path, value, "the text of a JSON object");
  }
  out += simdjson::to_string(document->root());
  return {};
}

// Appends an object; append(name, value) appends each value.
template <typename Append>
FieldError append_object(const simdjson::dom::object& fields, std::string& out, Append append) {
  out += '{';
  for (const auto& [name, value] : fields) {
    if (out.back() != '{') out += ',';
    append_string(name, out);
    out += ':';
    QUIRE_RETURN_IF_FIELD_ERROR(append(name, value));
  }
  out += '}';
  return {};
}

FieldError append_tool_call(const Path& path, Element value, const RequestLimits& limits,
                            std::string& out) {
  simdjson::dom::object call;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, call));
  bool has_function = false;
  QUIRE_RETURN_IF_FIELD_ERROR(
      append_object(call, out, [&](std::string_view name, Element part) -> FieldError {
        const Path at(path, name);
        if (name != "function") {
          out += simdjson::to_string(part);
          return {};
        }
        has_function = true;
        simdjson::dom::object function;
        QUIRE_RETURN_IF_FIELD_ERROR(read_object(at, part, function));
        std::string function_name;
        Element name_value;
        if (function["name"].get(name_value)) return missing(Path(at, "name"), "a string");
        QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(at, "name"), name_value, function_name));
        return append_object(function, out, [&](std::string_view key, Element field) -> FieldError {
          if (key == "arguments" && !field.is_null()) {
            return append_arguments(Path(at, key), field, limits, out);
          }
          out += simdjson::to_string(field);
          return {};
        });
      }));
  return has_function ? FieldError() : missing(Path(path, "function"), "an object");
}

FieldError append_tool_calls(const Path& path, Element value, const RequestLimits& limits,
                             std::string& out) {
  simdjson::dom::array calls;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, static_cast<size_t>(limits.max_tools), calls));
  out += '[';
  size_t idx = 0;
  for (const Element call : calls) {
    if (idx > 0) out += ',';
    QUIRE_RETURN_IF_FIELD_ERROR(append_tool_call(Path(path, idx), call, limits, out));
    ++idx;
  }
  out += ']';
  return {};
}

FieldError append_message(const Path& path, Element value, const RequestLimits& limits,
                          bool is_last, Conversation& conversation, std::string& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  Element role;
  const Path role_path(path, "role");
  if (fields["role"].get(role)) return missing(role_path, "a string");
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(role_path, role, conversation.final_role));
  constexpr size_t kMaxRoleBytes = 64;
  if (conversation.final_role.empty() || conversation.final_role.size() > kMaxRoleBytes) {
    return unexpected(role_path, role, "'system', 'user', 'assistant' or 'tool'");
  }
  out += "{\"role\":";
  append_string(conversation.final_role, out);
  Element content;
  conversation.final_content.clear();
  if (!fields["content"].get(content)) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_content(Path(path, "content"), content, conversation.final_content));
  } else if (conversation.final_role != "assistant") {
    return missing(Path(path, "content"), "a string or a list of parts");
  }
  // Few templates handle a message without content, so it becomes an empty string.
  out += ",\"content\":";
  const std::string& text = conversation.final_content;
  append_string(is_last ? with_marker(text, conversation.final_marker) : text, out);
  for (const auto& [name, field] : fields) {
    if (name == "role" || name == "content" || field.is_null()) continue;
    out += ',';
    append_string(name, out);
    out += ':';
    if (name == "tool_calls") {
      QUIRE_RETURN_IF_FIELD_ERROR(append_tool_calls(Path(path, name), field, limits, out));
    } else {
      out += simdjson::to_string(field);
    }
  }
  out += '}';
  return {};
}

}  // namespace

FieldError append_messages(Element value, const RequestLimits& limits, Conversation& conversation,
                           std::string& out) {
  const Path path("messages");
  simdjson::dom::array messages;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(limits.max_messages), messages));
  if (messages.size() == 0) return unexpected(path, value, "at least one message");
  out += '[';
  size_t idx = 0;
  for (const Element message : messages) {
    if (idx > 0) out += ',';
    const Path at(path, idx++);
    const bool is_last = idx == messages.size();
    QUIRE_RETURN_IF_FIELD_ERROR(append_message(at, message, limits, is_last, conversation, out));
  }
  out += ']';
  return {};
}

}  // namespace quire::server
