#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/openai/conversation.h"
#include "server/openai/generation_fields.h"
#include "server/openai/requests.h"
#include "server/openai/tool_kinds.h"

namespace quire::server {
namespace {

class ChatFields {
 public:
  ChatFields(ChatRequest& request, const RequestDefaults& defaults)
      : request_(request), defaults_(defaults), shared_(request, request.engine_request, defaults) {
    request_.engine_request.add_special_tokens = false;  // the template renders them
  }

  static FieldTable<ChatFields> table();
  auto parts() { return std::tie(request_); }

  // Reads a field that is not null. Ignores unknown fields.
  FieldError read(std::string_view name, Element value);
  // Checks the fields against each other, after all of them were read.
  FieldError finish();

 private:
  FieldError finish_tools();
  FieldError check_template() const;
  FieldError read_tool_choice(Element value);
  FieldError read_tool_name(const Path& path, Element value, std::string& name) const;
  FieldError finish_logprobs();

  ChatRequest& request_;
  const RequestDefaults& defaults_;
  GenerationFields shared_;
  ConversationFields conversation_;
  std::optional<Element> tool_choice_;
  std::optional<Element> max_completion_tokens_;
  std::optional<int> top_logprobs_;
  bool logprobs_ = false;
  bool echo_ = false;
};

constexpr size_t kMaxModalities = 16;

FieldError read_modalities(const Path& path, Element value) {
  std::vector<std::string> names;
  QUIRE_RETURN_IF_FIELD_ERROR(read_texts(path, value, kMaxModalities, names));
  const bool is_text = std::all_of(names.begin(), names.end(),
                                   [](const std::string& name) { return name == "text"; });
  return is_text ? FieldError() : unexpected(path, value, "'text' alone");
}

FieldTable<ChatFields> ChatFields::table() {
  static constexpr auto kTable = std::to_array<BodyField<ChatFields>>({
      {{"tool_choice",
        schema("`none`, `auto`, `required`, a function or allowed_tools", "ToolChoice"),
        "A choice that forces a call needs tools. A format of the text then has no effect."},
       into<&ChatFields::tool_choice_>},
      {kParallelToolCallsField, into<&ChatRequest::parallel_tool_calls>},
      {{"max_completion_tokens", kTokenLimit,
        "Takes precedence over max_tokens. Without either: the rest of the context."},
       into<&ChatFields::max_completion_tokens_>},
      {{"include_reasoning", kBoolean, "The response shows the reasoning; true by default."},
       into<&ChatRequest::include_reasoning>},
      {{"echo", kBoolean, "The response begins with the last message, if it is the assistant's."},
       into<&ChatFields::echo_>},
      {{"logprobs", kBoolean, "Log probabilities of the tokens of the response."},
       into<&ChatFields::logprobs_>},
      {{"top_logprobs", integer(0, kRequestLimits.max_logprobs),
        "Log probabilities of this many tokens at each position. A value above 0 needs logprobs."},
       into<&ChatFields::top_logprobs_>},
      {{"modalities", list_of(R"({"const":"text"})", kMaxModalities), "`text` alone."},
       check<read_modalities>},
      {refused("functions", "tools, the newer name of this field")},
      {refused("function_call", "tool_choice, the newer name of this field")},
  });
  return kTable;
}

FieldError ChatFields::read(std::string_view name, Element value) {
  if (const auto* const row = find_field(ConversationFields::table(), name)) {
    return row->read(conversation_, name, value);
  }
  if (const auto* const row = find_field(table(), name)) return row->read(*this, name, value);
  return shared_.read_or_report(name, value);
}

FieldError ChatFields::read_tool_name(const Path& path, Element value, std::string& name) const {
  simdjson::dom::object fields;
  std::string_view type;
  if (!value["type"].get_string().get(type) && is_hosted_tool(type)) return {};
  const std::string_view member = type == "custom" ? type : "function";
  const Path member_path(path, member);
  if (type == "custom") {
    QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, simdjson::dom::object(value), member, fields));
    QUIRE_RETURN_IF_FIELD_ERROR(read_required(member_path, fields, "name", name));
  } else {
    QUIRE_RETURN_IF_FIELD_ERROR(read_function(path, value, name, fields));
  }
  const Tool* const tool = find_tool(request_.tools, name);
  if (tool != nullptr && tool->is_custom == (type == "custom")) return {};
  return unexpected(Path(member_path, "name"), fields["name"].value_unsafe(),
                    "the name of one of the tools");
}

FieldError ChatFields::read_tool_choice(Element value) {
  const Path path("tool_choice");
  std::string_view choice;
  simdjson::dom::object fields;
  if (!value.get_object().get(fields)) {
    if (!fields["type"].get_string().get(choice) && choice == "allowed_tools") {
      const Path allowed_path(path, "allowed_tools");
      Element allowed;
      if (fields["allowed_tools"].get(allowed)) {
        return missing(allowed_path, "an object with the members 'mode' and 'tools'");
      }
      simdjson::dom::object allowed_fields;
      QUIRE_RETURN_IF_FIELD_ERROR(read_object(allowed_path, allowed, allowed_fields));
      const auto read_name = [this](const Path& at, Element tool, std::string& name) {
        return read_tool_name(at, tool, name);
      };
      return read_allowed_tools(allowed_path, allowed_fields, defaults_.limits, read_name,
                                request_);
    }
    request_.tool_choice = ToolChoice::kNamed;
    if (is_hosted_tool(choice)) {
      return unexpected(path, value, "a function or a custom tool: this server runs no tools");
    }
    return read_tool_name(path, value, request_.named_tool);
  }
  if (value.get_string().get(choice)) choice = {};
  if (choice == "none") {
    request_.tool_choice = ToolChoice::kNone;
  } else if (choice == "required") {
    request_.tool_choice = ToolChoice::kRequired;
    if (request_.tools.empty())
      return unexpected(path, value, "this choice only together with tools");
  } else if (choice != "auto") {
    return unexpected(path, value, "'none', 'auto', 'required', a function or allowed_tools");
  }
  return {};
}

FieldError ChatFields::finish_tools() {
  if (conversation_.tools) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_tools(*conversation_.tools, defaults_.limits, request_.tools, request_.ignored));
  }
  request_.tool_choice = request_.tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  if (tool_choice_) QUIRE_RETURN_IF_FIELD_ERROR(read_tool_choice(*tool_choice_));
  return check_tools(request_, defaults_);
}

// Refuses documents that the chat template ignores, because the model would not receive them.
FieldError ChatFields::check_template() const {
  if (conversation_.documents && template_ignores(defaults_, "documents")) {
    return field_error("documents",
                       "got documents, but the model's chat template does not use them; expected "
                       "no such field");
  }
  return {};
}

FieldError ChatFields::finish_logprobs() {
  if (top_logprobs_.value_or(0) > 0 && !logprobs_) {
    return field_error("top_logprobs", fmt::format("got {} without logprobs, expected logprobs to "
                                                   "be true",
                                                   *top_logprobs_));
  }
  if (logprobs_) request_.engine_request.sampling.logprobs = top_logprobs_.value_or(0);
  return {};
}

FieldError ChatFields::finish() {
  if (max_completion_tokens_) {
    QUIRE_RETURN_IF_FIELD_ERROR(
        shared_.read("max_completion_tokens", "max_tokens", *max_completion_tokens_));
  }
  QUIRE_RETURN_IF_FIELD_ERROR(finish_logprobs());
  QUIRE_RETURN_IF_FIELD_ERROR(finish_tools());
  QUIRE_RETURN_IF_FIELD_ERROR(check_template());
  QUIRE_RETURN_IF_FIELD_ERROR(shared_.finish(defaults_.chat_max_tokens, 1));
  const bool shows_tools = request_.tool_choice != ToolChoice::kNone;
  Conversation conversation;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_conversation(conversation_, shows_tools ? request_.tools : std::span<const Tool>(),
                        defaults_, conversation));
  if (conversation.ignores_effort) request_.ignored.emplace_back("reasoning_effort");
  if (echo_ && conversation.final_role == "assistant") {
    request_.echoed_message = conversation.final_content;
  }
  request_.conversation = template_input(std::move(conversation));
  return {};
}

}  // namespace

Parsed<ChatRequest> parse_chat_request(std::string_view body, const RequestDefaults& defaults) {
  Parsed<ChatRequest> parsed;
  parsed.error = read_body(body, defaults.limits, ChatFields(parsed.request, defaults));
  return parsed;
}

ObjectSchema chat_schema() {
  ObjectSchema object = {"ChatRequest"};
  object.add(ConversationFields::table());
  object.add(ChatFields::table());
  add_generation_fields(object);
  return object;
}

}  // namespace quire::server
