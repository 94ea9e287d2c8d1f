#include <fmt/format.h>

#include <algorithm>

#include "server/openai/answer_fields.h"
#include "server/openai/conversation.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

class ChatFields {
 public:
  ChatFields(ChatRequest& call, const RequestDefaults& defaults)
      : call_(call), defaults_(defaults), shared_(call, call.engine_request, defaults) {
    call_.engine_request.add_special_tokens = false;  // the template renders them
  }

  FieldError read(std::string_view name, Element value);
  FieldError finish();

 private:
  static const FieldHandlers<ChatFields>& handlers();
  FieldError finish_tools();
  FieldError check_template() const;
  FieldError read_tool_choice(Element value);
  FieldError read_named_tool(const Path& path, Element value);
  FieldError finish_logprobs();

  ChatRequest& call_;
  const RequestDefaults& defaults_;
  AnswerFields shared_;
  ConversationFields conversation_;
  std::optional<Element> tool_choice_;
  std::optional<Element> max_completion_tokens_;
  std::optional<int> top_logprobs_;
  bool logprobs_ = false;
  bool echo_ = false;
};

const FieldHandlers<ChatFields>& ChatFields::handlers() {
  using F = ChatFields;
  using P = const Path&;
  using E = Element;
  static const FieldHandlers<ChatFields> table = {
      {"tool_choice", [](F& f, P, E v) { return f.tool_choice_ = v, FieldError(); }},
      {"max_completion_tokens",
       [](F& f, P, E v) { return f.max_completion_tokens_ = v, FieldError(); }},
      {"parallel_tool_calls",
       [](F& f, P p, E v) { return read_bool(p, v, f.call_.parallel_tool_calls); }},
      {"include_reasoning",
       [](F& f, P p, E v) { return read_bool(p, v, f.call_.include_reasoning); }},
      {"logprobs", [](F& f, P p, E v) { return read_bool(p, v, f.logprobs_); }},
      {"top_logprobs",
       [](F& f, P p, E v) {
         int number = 0;
         QUIRE_RETURN_IF_FIELD_ERROR(read_int(p, v, 0, f.defaults_.limits.max_logprobs, number));
         f.top_logprobs_ = number;
         return FieldError();
       }},
      {"functions", [](F&, P p, E v) { return unexpected(p, v, "none: tools is its newer name"); }},
      {"function_call",
       [](F&, P p, E v) { return unexpected(p, v, "none: tool_choice is its newer name"); }},
      {"echo", [](F& f, P p, E v) { return read_bool(p, v, f.echo_); }},
      {"modalities",
       [](F&, P p, E v) {
         std::vector<std::string> names;
         QUIRE_RETURN_IF_FIELD_ERROR(read_texts(p, v, 16, names));
         const bool is_text = std::all_of(names.begin(), names.end(),
                                          [](const std::string& name) { return name == "text"; });
         return is_text ? FieldError() : unexpected(p, v, "'text' alone");
       }},
  };
  return table;
}

FieldError ChatFields::read(std::string_view name, Element value) {
  const auto found = handlers().find(name);
  if (found != handlers().end()) return found->second(*this, Path(name), value);
  bool taken = false;
  QUIRE_RETURN_IF_FIELD_ERROR(conversation_.read(name, value, taken));
  return taken ? FieldError() : shared_.read(name, value);
}

FieldError ChatFields::read_named_tool(const Path& path, Element value) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  Element type;
  std::string_view type_name = "function";
  if (!fields["type"].get(type) && (type.get_string().get(type_name) || type_name != "function")) {
    return unexpected(Path(path, "type"), type, "'function'");
  }
  const Path function_path(path, "function");
  const Path name_path(function_path, "name");
  Element function;
  Element name;
  simdjson::dom::object function_fields;
  if (fields["function"].get(function)) return missing(function_path, "an object");
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(function_path, function, function_fields));
  if (function_fields["name"].get(name)) return missing(name_path, "a string");
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(name_path, name, call_.named_tool));
  call_.tool_choice = ToolChoice::kNamed;
  const bool is_known = std::any_of(call_.tools.begin(), call_.tools.end(), [&](const Tool& tool) {
    return tool.name == call_.named_tool;
  });
  return is_known ? FieldError() : unexpected(name_path, name, "the name of one of the tools");
}

FieldError ChatFields::read_tool_choice(Element value) {
  const Path path("tool_choice");
  std::string_view choice;
  if (value.get_string().get(choice)) {
    if (!value.is_object()) {
      return unexpected(path, value, "'none', 'auto', 'required' or a function");
    }
    return read_named_tool(path, value);
  }
  if (choice == "none") {
    call_.tool_choice = ToolChoice::kNone;
  } else if (choice == "required") {
    call_.tool_choice = ToolChoice::kRequired;
    if (call_.tools.empty()) return unexpected(path, value, "tools to choose from");
  } else if (choice != "auto") {
    return unexpected(path, value, "'none', 'auto', 'required' or a function");
  }
  return {};
}

FieldError ChatFields::finish_tools() {
  if (conversation_.tools) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_tools(*conversation_.tools, defaults_.limits, call_.tools));
  }
  call_.tool_choice = call_.tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  if (tool_choice_) QUIRE_RETURN_IF_FIELD_ERROR(read_tool_choice(*tool_choice_));
  const bool is_forced =
      call_.tool_choice == ToolChoice::kRequired || call_.tool_choice == ToolChoice::kNamed;
  return is_forced && call_.restriction ? second_restriction("tool_choice") : FieldError();
}

// Refuses fields that the chat template ignores, since the model would never see them.
FieldError ChatFields::check_template() const {
  const auto is_lost = [this](std::string_view variable) {
    return !defaults_.chat_template.empty() &&
           !mentions_variable(defaults_.chat_template, variable);
  };
  if (call_.tool_choice == ToolChoice::kAuto && is_lost("tools")) {
    return field_error("tools",
                       "got some where the model's chat template knows none, expected tool_choice "
                       "'none', 'required' or a function");
  }
  if (conversation_.documents && is_lost("documents")) {
    return field_error("documents",
                       "got some where the model's chat template knows none, expected none");
  }
  if (conversation_.reasoning_effort && is_lost("reasoning_effort")) {
    return field_error("reasoning_effort",
                       "got one where the model's chat template knows none, expected none");
  }
  return {};
}

FieldError ChatFields::finish_logprobs() {
  if (top_logprobs_.value_or(0) > 0 && !logprobs_) {
    return field_error("top_logprobs", "got some without logprobs, expected logprobs to be true");
  }
  if (logprobs_) call_.engine_request.sampling.logprobs = top_logprobs_.value_or(0);
  return {};
}

FieldError ChatFields::finish() {
  if (max_completion_tokens_) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_int(Path("max_completion_tokens"), *max_completion_tokens_, 1,
                                         INT_MAX, call_.engine_request.sampling.max_tokens));
    QUIRE_RETURN_IF_FIELD_ERROR(shared_.read("max_tokens", *max_completion_tokens_));
  }
  QUIRE_RETURN_IF_FIELD_ERROR(finish_logprobs());
  QUIRE_RETURN_IF_FIELD_ERROR(finish_tools());
  QUIRE_RETURN_IF_FIELD_ERROR(check_template());
  QUIRE_RETURN_IF_FIELD_ERROR(shared_.finish(defaults_.chat_max_tokens, 1));
  const bool shows_tools = !call_.tools.empty() && call_.tool_choice != ToolChoice::kNone;
  Conversation conversation;
  QUIRE_RETURN_IF_FIELD_ERROR(
      render_variables(conversation_, shows_tools, defaults_.limits, conversation));
  call_.template_variables = std::move(conversation.variables);
  if (echo_ && conversation.final_role == "assistant") call_.echo_text = conversation.final_content;
  call_.continuation = continuation_of(std::move(conversation));
  return {};
}

FieldError parse_into(std::string_view body, const RequestDefaults& defaults, ChatRequest& call) {
  std::optional<JsonDocument> document;
  QUIRE_RETURN_IF_FIELD_ERROR(parse_body(body, defaults.limits.max_json_depth, document));
  ChatFields fields(call, defaults);
  for (const auto& [name, value] : simdjson::dom::object(document->root())) {
    if (!value.is_null()) QUIRE_RETURN_IF_FIELD_ERROR(fields.read(name, value));
  }
  return fields.finish();
}

}  // namespace

Parsed<ChatRequest> parse_chat_request(std::string_view body, const RequestDefaults& defaults) {
  Parsed<ChatRequest> parsed;
  parsed.error = parse_into(body, defaults, parsed.request);
  return parsed;
}

}  // namespace quire::server
