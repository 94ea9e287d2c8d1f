#include "server/openai/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/openai/continuation.h"
#include "server/openai/json_text.h"
#include "server/openai/messages.h"
#include "server/tools/random_id.h"

namespace quire::server {
namespace {

// Names that chat_template_kwargs must not set, because the request has fields for them or the
// server sets them.
constexpr auto kReserved =
    std::to_array<std::string_view>({"messages", "tools", "documents", "add_generation_prompt",
                                     "continue_final_message", "chat_template", "tokenize"});

FieldError append_kwargs(Element value, std::string& out) {
  const Path path("chat_template_kwargs");
  simdjson::dom::object kwargs;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, kwargs));
  for (const auto& [name, argument] : kwargs) {
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
      return field_error(Path(path, name), "got a reserved name, expected the template's own");
    }
    out += ',';
    append_string(name, out);
    out += ':';
    out += simdjson::to_string(argument);
  }
  return {};
}

FieldError read_optional_bool(const Path& path, Element value, std::optional<bool>& out) {
  bool flag = false;
  QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, flag));
  out = flag;
  return {};
}

FieldError read_tool(const Path& path, Element value, Tool& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  Element type;
  std::string_view type_name = "function";
  if (!fields["type"].get(type) && (type.get_string().get(type_name) || type_name != "function")) {
    return unexpected(Path(path, "type"), type, "'function'");
  }
  const Path function_path(path, "function");
  Element function;
  simdjson::dom::object function_fields;
  if (fields["function"].get(function)) return missing(function_path, "an object");
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(function_path, function, function_fields));
  const Path name_path(function_path, "name");
  Element name;
  if (function_fields["name"].get(name)) return missing(name_path, "a string");
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(name_path, name, out.name));
  constexpr size_t kMaxNameBytes = 256;
  if (out.name.empty() || out.name.size() > kMaxNameBytes) {
    return unexpected(name_path, name, fmt::format("1 to {} bytes of text", kMaxNameBytes));
  }
  out.parameters = "{}";
  Element parameters;
  if (function_fields["parameters"].get(parameters) || parameters.is_null()) return {};
  if (!parameters.is_object()) {
    return unexpected(Path(function_path, "parameters"), parameters, "a JSON schema: an object");
  }
  out.parameters = simdjson::to_string(parameters);
  return {};
}

}  // namespace

FieldError ConversationFields::read(std::string_view name, Element value, bool& taken) {
  taken = true;
  if (name == "messages") {
    messages = value;
  } else if (name == "tools") {
    tools = value;
  } else if (name == "documents") {
    documents = value;
  } else if (name == "chat_template_kwargs") {
    template_kwargs = value;
  } else if (name == "reasoning_effort") {
    reasoning_effort = value;
  } else if (name == "add_generation_prompt") {
    return read_optional_bool(Path(name), value, add_generation_prompt);
  } else if (name == "continue_final_message") {
    return read_bool(Path(name), value, continue_final_message);
  } else if (name == "chat_template") {
    return unexpected(Path(name), value, "none: templates come from the operator");
  } else {
    taken = false;
  }
  return {};
}

bool mentions_variable(std::string_view chat_template, std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (size_t at = chat_template.find(name); at != std::string_view::npos;
       at = chat_template.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool is_start = at == 0 || !is_word(chat_template[at - 1]);
    if (is_start && (end == chat_template.size() || !is_word(chat_template[end]))) return true;
  }
  return false;
}

FieldError render_variables(const ConversationFields& fields, bool shows_tools,
                            const RequestLimits& limits, Conversation& out) {
  if (!fields.messages) return field_error("messages", "got none, expected at least one message");
  if (fields.continue_final_message && fields.add_generation_prompt.value_or(false)) {
    return field_error("continue_final_message",
                       "got true beside add_generation_prompt, expected one of the two");
  }
  std::string& json = out.variables;
  json = "{\"messages\":";
  if (fields.continue_final_message) out.final_marker = random_id();
  QUIRE_RETURN_IF_FIELD_ERROR(append_messages(*fields.messages, limits, out, json));
  if (fields.continue_final_message && !has_text_to_continue(out.final_content)) {
    return field_error(
        "messages",
        "got a last message without text, expected some for continue_final_message to "
        "continue; send some, or no continue_final_message");
  }
  const bool adds_prompt = fields.add_generation_prompt.value_or(!fields.continue_final_message);
  json += adds_prompt ? ",\"add_generation_prompt\":true" : ",\"add_generation_prompt\":false";
  if (fields.tools && shows_tools) {
    json += ",\"tools\":";
    json += simdjson::to_string(*fields.tools);
  }
  if (fields.documents) {
    simdjson::dom::array documents;
    QUIRE_RETURN_IF_FIELD_ERROR(read_list(Path("documents"), *fields.documents,
                                          static_cast<size_t>(limits.max_messages), documents));
    json += ",\"documents\":";
    json += simdjson::to_string(*fields.documents);
  }
  if (fields.reasoning_effort) {
    std::string effort;
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_text(Path("reasoning_effort"), *fields.reasoning_effort, effort));
    json += ",\"reasoning_effort\":";
    append_string(effort, json);
  }
  if (fields.template_kwargs)
    QUIRE_RETURN_IF_FIELD_ERROR(append_kwargs(*fields.template_kwargs, json));
  json += '}';
  return {};
}

std::optional<Continuation> continuation_of(Conversation&& conversation) {
  if (conversation.final_marker.empty()) return std::nullopt;
  return Continuation{.content = std::move(conversation.final_content),
                      .marker = std::move(conversation.final_marker)};
}

FieldError read_tools(Element value, const RequestLimits& limits, std::vector<Tool>& out) {
  const Path path("tools");
  simdjson::dom::array tools;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, static_cast<size_t>(limits.max_tools), tools));
  for (const Element tool : tools) {
    const Path at(path, out.size());
    QUIRE_RETURN_IF_FIELD_ERROR(read_tool(at, tool, out.emplace_back()));
  }
  return {};
}

}  // namespace quire::server
