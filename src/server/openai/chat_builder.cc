#include "server/openai/chat_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "server/openai/reasoning_fields.h"
#include "server/openai/tool_kinds.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

using jinja::Value;
using Entries = std::vector<jinja::Dict::Entry>;

}  // namespace

ChatBuilder::ChatBuilder(ChatRequest& the_request, const RequestDefaults& the_defaults)
    : request(the_request),
      defaults(the_defaults),
      values(the_defaults.limits),
      shared_(the_request, the_request.engine_request, the_defaults) {
  request.engine_request.add_special_tokens = false;  // the template renders them
}

FieldTable<ChatBuilder> ChatBuilder::table() {
  constexpr std::string_view kOneResponse = "1: a request of this API has one response";
  constexpr std::string_view kOtherShape = "the response of this API has no place for it";
  static constexpr auto kTable = std::to_array<BodyField<ChatBuilder>>({
      {only("n", "1", kOneResponse)},
      {only("best_of", "1", kOneResponse)},
      {without_effect("logprobs", kOtherShape)},
      {without_effect("prompt_logprobs", kOtherShape)},
      {without_effect("return_token_ids", kOtherShape)},
      {without_effect("return_tokens_as_token_ids", kOtherShape)},
      {without_effect("stream_options", kOtherShape)},
  });
  return kTable;
}

FieldError ChatBuilder::read(std::string_view name, Element value) {
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  return shared_.read(name, value);
}

FieldError ChatBuilder::read_sampling(const Path& path, std::string_view name, Element value) {
  return shared_.read(path, name, value);
}

FieldError ChatBuilder::read_max_tokens(const Path& path, Element value) {
  int max_tokens = 0;
  QUIRE_RETURN_IF_FIELD_ERROR(read_int(path, value, 1, INT_MAX, max_tokens));
  return shared_.read("max_tokens", value);
}

FieldError ChatBuilder::read_template_kwargs(const Path& path, Element value) {
  return server::read_template_kwargs(path, value, values, template_kwargs_);
}

FieldError ChatBuilder::add_tool(const Path& path, const simdjson::dom::object& fields,
                                 std::string_view parameters_name) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_function_fields(path, fields, parameters_name, request.tools));
  Entries function;
  add_entry("name", Value::string(request.tools.back().name), function);
  Element description;
  if (!fields["description"].get(description) && !description.is_null()) {
    std::string text;
    QUIRE_RETURN_IF_FIELD_ERROR(read_text(Path(path, "description"), description, text));
    add_entry("description", Value::string(text), function);
  }
  // Templates expect a schema, even for a tool without parameters.
  Value parameters_value =
      Value::dict({{"type", Value::string("object")}, {"properties", Value::dict({})}});
  Element parameters;
  if (!fields[parameters_name].get(parameters) && !parameters.is_null()) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        values.convert(Path(path, parameters_name), parameters, parameters_value));
  }
  add_entry("parameters", std::move(parameters_value), function);
  tools_.emplace_back(request.tools.back().name,
                      Value::dict({{"type", Value::string("function")},
                                   {"function", make_dict(std::move(function))}}));
  return {};
}

FieldError ChatBuilder::add_custom_tool(const Path& path, const simdjson::dom::object& fields) {
  Value shown;
  QUIRE_RETURN_IF_FIELD_ERROR(read_custom_tool(path, fields, request.tools, shown));
  tools_.emplace_back(request.tools.back().name, std::move(shown));
  return {};
}

void ChatBuilder::choose_by_default() {
  request.tool_choice = request.tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
}

FieldError ChatBuilder::choose_tool(const Path& name_path, Element name) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(name_path, name, request.named_tool));
  request.tool_choice = ToolChoice::kNamed;
  if (find_tool(request.tools, request.named_tool) != nullptr) return {};
  return unexpected(name_path, name, "the name of one of the tools");
}

FieldError ChatBuilder::require_tool(const Path& path, Element choice) {
  request.tool_choice = ToolChoice::kRequired;
  if (!request.tools.empty()) return {};
  return unexpected(path, choice, "this choice only together with tools");
}

FieldError ChatBuilder::add_tool_result(const Path& id_path, std::string_view id,
                                        std::string content) {
  const auto name = names_by_call_.find(id);
  if (name == names_by_call_.end()) {
    return field_error(id_path, fmt::format("got '{}', expected the id of a call in an earlier "
                                            "message of the assistant",
                                            clipped(id)));
  }
  messages.push_back({.role = "tool",
                      .content = std::move(content),
                      .tool_call_id = std::string(id),
                      .name = name->second});
  return {};
}

void ChatBuilder::add_call(TemplateCall call) {
  names_by_call_.insert_or_assign(call.id, call.name);
  std::string& content = messages.back().content;
  if (!content.empty() && !call.text.empty()) content += '\n';
  content += call.text;
  messages.back().tool_calls.push_back(std::move(call));
}

void ChatBuilder::set_reasoning_effort(const Path& path, std::string_view effort) {
  if (!add_effort(effort, defaults, variables_)) request.ignored.push_back(path.text());
}

void ChatBuilder::set_thinking(bool is_wanted) {
  constexpr std::string_view kVariable = "enable_thinking";
  if (template_ignores(defaults, kVariable)) return;
  add_entry(kVariable, Value::boolean(is_wanted), variables_);
}

void ChatBuilder::set_sources(const Path& path) {
  for (; num_with_source_ < messages.size(); ++num_with_source_) {
    messages[num_with_source_].source = path.text();
  }
}

Value ChatBuilder::message_value(const TemplateMessage& message, uint32_t owner,
                                 std::string_view marker) const {
  Entries entries;
  add_entry("role", Value::string(message.role), entries);
  add_entry("content", Value::string(with_marker(message.content, marker), owner), entries);
  if (!message.reasoning.empty()) {
    add_reasoning(Value::string(message.reasoning), defaults, entries);
  }
  if (!message.tool_calls.empty()) {
    std::vector<Value> calls;
    for (const TemplateCall& call : message.tool_calls) {
      calls.push_back(
          Value::dict({{"id", Value::string(call.id)},
                       {"type", Value::string("function")},
                       {"function", Value::dict({{"name", Value::string(call.name, owner)},
                                                 {"arguments", call.arguments}})}}));
    }
    add_entry("tool_calls", Value::list(std::move(calls)), entries);
  }
  if (!message.tool_call_id.empty()) {
    add_entry("tool_call_id", Value::string(message.tool_call_id), entries);
    add_entry("name", Value::string(message.name), entries);
  }
  return make_dict(std::move(entries));
}

FieldError ChatBuilder::finish(const Path& messages_path, bool continues) {
  if (messages.empty()) {
    return field_error(messages_path, "got no message with content, expected at least one");
  }
  const auto max_messages = static_cast<size_t>(defaults.limits.max_messages);
  if (messages.size() > max_messages) {
    return field_error(messages_path, fmt::format("got {} messages, expected at most {}",
                                                  messages.size(), max_messages));
  }
  QUIRE_RETURN_IF_FIELD_ERROR(check_tools(request, defaults));
  QUIRE_RETURN_IF_FIELD_ERROR(shared_.finish(defaults.chat_max_tokens, 1));
  TemplateInput& input = request.conversation;
  input.unread_arguments = std::move(values.unread_arguments);
  if (continues) {
    input.continuation = Continuation{.content = messages.back().content,
                                      .marker = random_id(),
                                      .alternative = "end with a message of the user"};
    QUIRE_RETURN_IF_FIELD_ERROR(check_continued(messages_path, *input.continuation));
  }
  std::vector<Value> message_values;
  for (const TemplateMessage& message : messages) {
    const bool is_continued = continues && &message == &messages.back();
    const auto owner = static_cast<uint32_t>(message_values.size() + 1);
    const auto is_unread = [](const TemplateCall& call) { return !call.text.empty(); };
    if (std::ranges::any_of(message.tool_calls, is_unread)) {
      input.messages_with_unread.push_back(message_values.size());
    }
    message_values.push_back(
        message_value(message, owner, is_continued ? input.continuation->marker : ""));
    input.sources.push_back(message.source);
  }
  add_entry("messages", Value::list(std::move(message_values)), variables_);
  add_entry("add_generation_prompt", Value::boolean(!continues), variables_);
  std::vector<Value> tools;
  for (auto& [name, tool] : tools_) {
    const bool is_shown =
        request.tool_choice != ToolChoice::kNone && find_tool(request.tools, name) != nullptr;
    if (is_shown) tools.push_back(std::move(tool));
  }
  if (!tools.empty()) add_entry("tools", Value::list(std::move(tools)), variables_);
  std::ranges::move(template_kwargs_, std::back_inserter(variables_));
  input.variables = make_dict(std::move(variables_));
  return {};
}

}  // namespace quire::server
