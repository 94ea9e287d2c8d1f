#include "server/openai/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text.h"
#include "jinja/chat_template.h"
#include "jinja/python_text.h"
#include "server/openai/generation_fields.h"
#include "server/openai/reasoning_fields.h"
#include "server/openai/tool_kinds.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

using jinja::Value;
using Entries = std::vector<jinja::Dict::Entry>;

// Names that chat_template_kwargs must not set, because the request has fields for them or the
// server sets them.
constexpr auto kReserved =
    std::to_array<std::string_view>({"messages", "tools", "documents", "add_generation_prompt",
                                     "continue_final_message", "chat_template", "tokenize"});

// Levels of the template's variables around the arguments of a tool call: the variables, messages,
// a message, tool_calls, a tool call and its function.
constexpr size_t kLevelsAroundArguments = 6;

// Templates trim messages by Python's rules, so these functions trim Unicode's white space too.
std::string_view strip_left(std::string_view text) {
  return jinja::strip(text, std::nullopt, true, false);
}

std::string_view strip_right(std::string_view text) {
  return jinja::strip(text, std::nullopt, false, true);
}

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
    return unexpected(Path(path, "type"), value, "'text', the only type that the model reads");
  }
  return read_required(path, fields, is_refusal ? "refusal" : "text", out);
}

// Returns whether `value` has at most `num_left` values and keys, and subtracts them.
bool take_values(Element value, size_t& num_left) {
  if (num_left == 0) return false;
  --num_left;
  simdjson::dom::array items;
  simdjson::dom::object members;
  if (!value.get_array().get(items)) {
    for (const Element item : items) {
      if (!take_values(item, num_left)) return false;
    }
    return true;
  }
  if (value.get_object().get(members)) return true;
  for (const auto& [key, member] : members) {
    if (num_left == 0) return false;
    --num_left;
    if (!take_values(member, num_left)) return false;
  }
  return true;
}

// Reads {"id", "type": "custom", "custom": {"name", "input"}}.
FieldError read_custom_call(const Path& path, const simdjson::dom::object& fields,
                            const simdjson::dom::object& custom, const TemplateValues& values,
                            Value& out) {
  std::string id;
  std::string name;
  std::string input;
  const Path custom_path(path, "custom");
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "id", id));
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(custom_path, custom, "name", name));
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(custom_path, custom, "input", input));
  out = Value::dict(
      {{"id", Value::string(id)},
       {"type", Value::string("function")},
       {"function", Value::dict({{"name", Value::string(name, values.owner)},
                                 {"arguments", custom_arguments(input, values.owner)}})}});
  return {};
}

FieldError read_tool_call(const Path& path, Element value, TemplateValues& values, Value& out,
                          std::string& content) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  simdjson::dom::object custom;
  if (!fields["custom"].get_object().get(custom)) {
    return read_custom_call(path, fields, custom, values, out);
  }
  const Path function_path(path, "function");
  simdjson::dom::object function_fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "function", function_fields));
  std::string name;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(function_path, function_fields, "name", name));
  Entries function;
  Value arguments;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_arguments(function_path, function_fields, "arguments", values, arguments, content));
  for (const auto& [key, field] : function_fields) {
    if (key == "arguments") continue;
    Value field_value;
    QUIRE_RETURN_IF_FIELD_ERROR(values.convert(Path(function_path, key), field, field_value));
    add_entry(key, std::move(field_value), function);
  }
  add_entry("arguments", std::move(arguments), function);
  Entries call;
  for (const auto& [key, field] : fields) {
    Value field_value;
    if (key == "function") {
      field_value = make_dict(std::move(function));
    } else {
      QUIRE_RETURN_IF_FIELD_ERROR(values.convert(Path(path, key), field, field_value));
    }
    add_entry(key, std::move(field_value), call);
  }
  out = make_dict(std::move(call));
  return {};
}

FieldError read_tool_calls(const Path& path, Element value, TemplateValues& values, Value& out,
                           std::string& content) {
  simdjson::dom::array calls;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(values.limits.max_tools), calls));
  std::vector<Value> read;
  for (const Element call : calls) {
    const Path at(path, read.size());
    QUIRE_RETURN_IF_FIELD_ERROR(read_tool_call(at, call, values, read.emplace_back(), content));
  }
  out = Value::list(std::move(read));
  return {};
}

// The fields of a message that templates write as text; other fields may have any type.
bool is_text_field(std::string_view name) {
  return name == "name" || name == "tool_call_id" || name == "reasoning_content" ||
         name == "reasoning";
}

// Content becomes one string and the arguments of tool calls become dicts; all other fields are
// copied, without those that are null or an empty list.
FieldError read_message(const Path& path, Element value, const RequestDefaults& defaults,
                        TemplateValues& values, bool is_last, Conversation& conversation,
                        Value& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  std::string& role = conversation.final_role;
  std::string& text = conversation.final_content;
  QUIRE_RETURN_IF_FIELD_ERROR(read_role(path, fields, defaults, role));
  Element content;
  text.clear();
  if (!fields["content"].get(content)) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_content(Path(path, "content"), content, text));
  } else if (role != "assistant") {
    return missing(Path(path, "content"), "a string or a list of parts");
  }
  Value calls;
  Element calls_field;
  if (!fields["tool_calls"].get(calls_field) && !is_absent(calls_field)) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_tool_calls(Path(path, "tool_calls"), calls_field, values, calls, text));
  }
  Entries message;
  Value reasoning;
  add_entry("role", Value::string(role), message);
  // Few templates handle a message without content, so it becomes an empty string.
  const std::string marked = is_last ? with_marker(text, conversation.final_marker) : text;
  add_entry("content", Value::string(marked, values.owner), message);
  for (const auto& [name, field] : fields) {
    if (name == "role" || name == "content" || is_absent(field)) continue;
    Value field_value;
    if (name == "tool_calls") {
      field_value = std::move(calls);
    } else {
      if (is_text_field(name) && !field.is_string()) {
        return unexpected(Path(path, name), field, "a string");
      }
      QUIRE_RETURN_IF_FIELD_ERROR(values.convert(Path(path, name), field, field_value));
    }
    if (name == "reasoning" || name == "reasoning_content") reasoning = field_value;
    add_entry(name, std::move(field_value), message);
  }
  if (!reasoning.is_none()) add_reasoning(reasoning, defaults, message);
  out = make_dict(std::move(message));
  return {};
}

FieldError read_messages(Element value, const RequestDefaults& defaults, TemplateValues& values,
                         Conversation& conversation, Value& out) {
  const Path path("messages");
  simdjson::dom::array messages;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(path, value, static_cast<size_t>(values.limits.max_messages), messages));
  if (messages.size() == 0) return unexpected(path, value, "at least one message");
  std::vector<Value> read;
  for (const Element message : messages) {
    const Path at(path, read.size());
    const bool is_last = read.size() + 1 == messages.size();
    values.owner = static_cast<uint32_t>(read.size() + 1);
    const size_t num_unread = values.unread_arguments.size();
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_message(at, message, defaults, values, is_last, conversation, read.emplace_back()));
    if (values.unread_arguments.size() > num_unread) {
      conversation.messages_with_unread.push_back(read.size() - 1);
    }
  }
  values.owner = 0;
  conversation.unread_arguments = std::move(values.unread_arguments);
  out = Value::list(std::move(read));
  return {};
}

// Converts the tools of the request whose names are in `shown`: functions without changes, custom
// tools to functions. read_tools() has checked all tools.
FieldError read_shown_tools(simdjson::dom::array tools, std::span<const Tool> shown,
                            TemplateValues& values, Value& out) {
  std::vector<Value> read;
  for (const Element tool : tools) {
    std::string_view type;
    if (tool["type"].get_string().get(type)) type = "";  // a function
    if (is_hosted_tool(type)) continue;
    const bool is_custom = type == "custom";
    simdjson::dom::object custom;
    if (is_custom && tool["custom"].get_object().get(custom)) continue;
    std::string_view name;
    if (tool[is_custom ? "custom" : "function"]["name"].get_string().get(name)) continue;
    if (find_tool(shown, name) == nullptr) continue;
    if (is_custom) {
      std::vector<Tool> unused;
      QUIRE_RETURN_IF_FIELD_ERROR(read_custom_tool("tools", custom, unused, read.emplace_back()));
    } else {
      QUIRE_RETURN_IF_FIELD_ERROR(values.convert("tools", tool, read.emplace_back()));
    }
  }
  out = Value::list(std::move(read));
  return {};
}

// Returns whether the source contains the name as a word.
bool mentions_variable(std::string_view chat_template, std::string_view name) {
  const auto is_word = [](char c) { return is_alphanumeric(c) || c == '_'; };
  for (size_t at = chat_template.find(name); at != std::string_view::npos;
       at = chat_template.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool is_start = at == 0 || !is_word(chat_template[at - 1]);
    if (is_start && (end == chat_template.size() || !is_word(chat_template[end]))) return true;
  }
  return false;
}

}  // namespace

FieldError TemplateValues::convert(const Path& path, Element value, Value& out) {
  if (!take_values(value, num_left_)) {
    return field_error(path, fmt::format("got too many JSON values, expected at most {} in the "
                                         "messages, tools, documents and chat_template_kwargs "
                                         "together; send the data as text",
                                         limits.max_template_values));
  }
  out = value_from_json(value, owner);
  return {};
}

void add_entry(std::string_view name, Value value, Entries& out) {
  out.emplace_back(Value::string(name), std::move(value));
}

Value make_dict(Entries&& entries) {
  return Value::of(Value::DictPtr(jinja::Dict::build(std::move(entries))));
}

std::string with_marker(std::string_view content, std::string_view marker) {
  std::string marked(content);
  marked.insert(strip_right(content).size(), marker);
  return marked;
}

FieldError read_content(const Path& path, Element value, std::string& out) {
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

FieldError read_arguments(const Path& path, const simdjson::dom::object& fields,
                          std::string_view name, TemplateValues& values, Value& out,
                          std::string& content) {
  out = make_dict({});
  Element value;
  if (fields[name].get(value) || value.is_null()) return {};
  const Path at(path, name);
  if (value.is_object()) return values.convert(at, value, out);
  std::string_view given;
  const std::string text =
      value.get_string().get(given) ? std::string(simdjson::minify(value)) : std::string(given);
  if (text.empty()) return {};
  const auto document = JsonDocument::parse(
      text, "arguments", {.max_depth = values.limits.max_json_depth - kLevelsAroundArguments});
  if (document.ok() && document->root().is_object()) {
    return values.convert(at, document->root(), out);
  }
  if (!content.empty()) content += '\n';
  content += text;
  values.unread_arguments.push_back(at.text());
  return {};
}

FieldError read_template_kwargs(const Path& path, Element value, TemplateValues& values,
                                Entries& out) {
  simdjson::dom::object kwargs;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, kwargs));
  for (const auto& [name, argument] : kwargs) {
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
      return field_error(Path(path, name), "got a reserved name, expected the template's own");
    }
    Value argument_value;
    QUIRE_RETURN_IF_FIELD_ERROR(values.convert(Path(path, name), argument, argument_value));
    add_entry(name, std::move(argument_value), out);
  }
  return {};
}

FieldTable<ConversationFields> ConversationFields::table() {
  using C = ConversationFields;
  static constexpr auto kTable = std::to_array<BodyField<C>>({
      {required({"messages", list_of("ChatMessage", kRequestLimits.max_messages, 1),
                 "The conversation."}),
       into<&C::messages>},
      {{"tools", list_of("Tool", kRequestLimits.max_tools),
        "With `tool_choice` `auto`, the model's chat template must use them."},
       into<&C::tools>},
      {{"documents", list_of("{}", kRequestLimits.max_messages),
        "The model's chat template must use them."},
       into<&C::documents>},
      {kTemplateKwargsField, into<&C::template_kwargs>},
      {{"reasoning_effort", kTextValue,
        "`none`: off. A template that does not read it: named in `x-quire-ignored`."},
       into<&C::reasoning_effort>},
      {{"add_generation_prompt", kBoolean, "The prompt ends with the start of an answer."},
       into<&C::add_generation_prompt>},
      {{"continue_final_message", kBoolean,
        "The response continues the last message. Excludes add_generation_prompt."},
       into<&C::continue_final_message>},
      {refused("chat_template", "none: the operator chooses the template")},
  });
  return kTable;
}

bool template_ignores(const RequestDefaults& defaults, std::string_view variable) {
  return !defaults.chat_template.empty() && !mentions_variable(defaults.chat_template, variable);
}

bool template_may_read(const RequestDefaults& defaults, std::string_view text) {
  const std::string_view source = defaults.chat_template;
  const auto has_quoted = [&](char quote) {
    return source.find(quote + std::string(text) + quote) != std::string_view::npos;
  };
  return source.empty() || has_quoted('\'') || has_quoted('"');
}

FieldError read_role(const Path& path, const simdjson::dom::object& fields,
                     const RequestDefaults& defaults, std::string& out) {
  constexpr auto kUsual = std::to_array<std::string_view>(
      {"system", "developer", "user", "assistant", "tool", "function"});
  constexpr size_t kMaxRoleBytes = 64;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "role", out));
  const bool is_usual = std::ranges::find(kUsual, out) != kUsual.end();
  if (out.empty() || out.size() > kMaxRoleBytes ||
      (!is_usual && !template_may_read(defaults, out))) {
    return unexpected(
        Path(path, "role"), fields["role"].value_unsafe(),
        "'system', 'developer', 'user', 'assistant', 'tool', or another role that the "
        "model's chat template names");
  }
  if (out == "developer" && !template_may_read(defaults, out)) out = "system";
  return {};
}

FieldError read_conversation(const ConversationFields& fields, std::span<const Tool> shown_tools,
                             const RequestDefaults& defaults, Conversation& out) {
  const RequestLimits& limits = defaults.limits;
  if (!fields.messages) return field_error("messages", "got none, expected at least one message");
  bool continues = false;
  if (fields.continue_final_message) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_bool("continue_final_message", *fields.continue_final_message, continues));
  }
  bool adds_prompt = !continues;
  if (fields.add_generation_prompt) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_bool("add_generation_prompt", *fields.add_generation_prompt, adds_prompt));
  }
  if (continues && adds_prompt) {
    return field_error("continue_final_message",
                       "got true beside add_generation_prompt, expected one of the two");
  }
  if (continues) out.final_marker = random_id();
  TemplateValues values(limits);
  Value messages;
  QUIRE_RETURN_IF_FIELD_ERROR(read_messages(*fields.messages, defaults, values, out, messages));
  if (continues) {
    QUIRE_RETURN_IF_FIELD_ERROR(check_continued("messages", {.content = out.final_content}));
  }
  Entries variables;
  add_entry("messages", std::move(messages), variables);
  add_entry("add_generation_prompt", Value::boolean(adds_prompt), variables);
  if (fields.tools && !shown_tools.empty()) {
    Value tools;
    QUIRE_RETURN_IF_FIELD_ERROR(read_shown_tools(*fields.tools, shown_tools, values, tools));
    add_entry("tools", std::move(tools), variables);
  }
  if (fields.documents) {
    simdjson::dom::array documents;
    QUIRE_RETURN_IF_FIELD_ERROR(read_list("documents", *fields.documents,
                                          static_cast<size_t>(limits.max_messages), documents));
    Value documents_value;
    QUIRE_RETURN_IF_FIELD_ERROR(values.convert("documents", *fields.documents, documents_value));
    add_entry("documents", std::move(documents_value), variables);
  }
  if (fields.reasoning_effort) {
    std::string effort;
    QUIRE_RETURN_IF_FIELD_ERROR(read_text("reasoning_effort", *fields.reasoning_effort, effort));
    out.ignores_effort = !add_effort(effort, defaults, variables);
  }
  if (fields.template_kwargs) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_template_kwargs("chat_template_kwargs", *fields.template_kwargs, values, variables));
  }
  out.variables = make_dict(std::move(variables));
  return {};
}

TemplateInput template_input(Conversation&& conversation) {
  TemplateInput input = {.variables = std::move(conversation.variables),
                         .unread_arguments = std::move(conversation.unread_arguments),
                         .messages_with_unread = std::move(conversation.messages_with_unread)};
  if (!conversation.final_marker.empty()) {
    input.continuation = Continuation{.content = std::move(conversation.final_content),
                                      .marker = std::move(conversation.final_marker)};
  }
  return input;
}

FieldError continue_from(const Continuation& continuation, MarkedText& rendered) {
  const std::string& marker = continuation.marker;
  const std::string_view text = strip_right(continuation.content);
  const std::string_view space = std::string_view(continuation.content).substr(text.size());
  const std::string_view all = rendered.text;
  const size_t at = find_text(all, marker);
  const bool is_there =
      at != std::string_view::npos && all.substr(0, at).ends_with(strip_left(text));
  if (!is_there || find_text(all, marker, at + marker.size()) != std::string_view::npos) {
    return field_error("messages",
                       fmt::format("the template changes or drops the last message, expected a "
                                   "message that it writes once and unchanged; send another last "
                                   "message, or {}",
                                   continuation.alternative));
  }
  // If the template kept the message's trailing white space, it belongs to the message.
  const bool keeps_space = all.substr(at + marker.size()).starts_with(space);
  rendered = copy_part(rendered, all.substr(0, at));
  if (keeps_space) rendered.append_untrusted(space);
  return {};
}

FieldError check_continued(const Path& messages_path, const Continuation& continuation) {
  if (!strip_left(continuation.content).empty()) return {};
  return field_error(messages_path,
                     fmt::format("got a last message without text, expected text to continue; add "
                                 "text to it, or {}",
                                 continuation.alternative));
}

}  // namespace quire::server
