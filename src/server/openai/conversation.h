// Converts a request's messages and tools into the variables of the chat template.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/field_table.h"
#include "server/openai/json_fields.h"
#include "server/openai/requests.h"

namespace quire::server {

// The fields as received, without those that are null; read_conversation() checks them.
struct ConversationFields {
  std::optional<Element> messages;
  std::optional<Element> tools;
  std::optional<Element> documents;
  std::optional<Element> template_kwargs;
  std::optional<Element> reasoning_effort;
  std::optional<Element> add_generation_prompt;
  std::optional<Element> continue_final_message;

  static FieldTable<ConversationFields> table();
};

// Fields of several APIs.
inline constexpr Field kTemplateKwargsField = {
    "chat_template_kwargs",
    schema("an object", R"({"type":"object","propertyNames":{"not":{"enum":["messages","tools",
    "documents","add_generation_prompt","continue_final_message","chat_template","tokenize"]}}})"),
    "Further variables of the chat template."};
inline constexpr Field kParallelToolCallsField = {"parallel_tool_calls", kBoolean,
                                                  "false: at most one call."};

struct Conversation {
  jinja::Value variables;
  std::string final_role;     // of the last message
  std::string final_content;  // text of the last message
  std::string final_marker;   // random text at the end of final_content in `variables`; empty: none
  bool ignores_effort = false;                // the template does not read reasoning_effort
  std::vector<std::string> unread_arguments;  // see TemplateInput
  std::vector<size_t> messages_with_unread;   // see TemplateInput
};

// Converts the JSON of one request into values of the template. The number of values is bounded,
// because a value takes up to 200 bytes, even if its text has only 2 bytes: [] or "".
class TemplateValues {
 public:
  explicit TemplateValues(const RequestLimits& the_limits)
      : limits(the_limits), num_left_(the_limits.max_template_values) {}

  // Fails if all converted values together exceed the limit.
  FieldError convert(const Path& path, Element value, jinja::Value& out);

  const RequestLimits& limits;
  uint32_t owner = 0;  // of the converted texts (see ByteSpans): a message's index plus 1
  std::vector<std::string> unread_arguments;  // see TemplateInput

 private:
  size_t num_left_;
};

// Reads the template's variables into `out`. `shown_tools` are the tools that the template gets, a
// part of those that read_tools() has read from `fields`.
FieldError read_conversation(const ConversationFields& fields, std::span<const Tool> shown_tools,
                             const RequestDefaults& defaults, Conversation& out);

// Moves the variables out, and the continuation if the request asked for continue_final_message.
TemplateInput template_input(Conversation&& conversation);

// Reads functions and tools with free text; two with the same name are an error. Adds the types of
// other tools to `ignored`.
FieldError read_tools(Element value, const RequestLimits& limits, std::vector<Tool>& out,
                      std::vector<std::string>& ignored);
// Returns the tool with this name, or null.
const Tool* find_tool(std::span<const Tool> tools, std::string_view name);

// Reads content that is a string, null or a list of text parts. Parts are joined by newlines, as in
// vLLM. Refuses other kinds (images, audio, files) by name.
FieldError read_content(const Path& path, Element value, std::string& out);

// Reads a tool call's arguments from the field `name` as a dict, which templates expect: an object,
// or the text of one. As in vLLM, null and an empty text mean no arguments; an absent field, too. A
// model must have written any other text or value by mistake, so this text is appended to
// `content`.
FieldError read_arguments(const Path& path, const simdjson::dom::object& fields,
                          std::string_view name, TemplateValues& values, jinja::Value& out,
                          std::string& content);

// Reads a function: its name, and its parameters from the field `parameters_name`. Adds it to
// `out`, which must not have a tool of that name.
FieldError read_function_fields(const Path& path, const simdjson::dom::object& fields,
                                std::string_view parameters_name, std::vector<Tool>& out);

// Reads {"mode": "auto" or "required", "tools": […]} and removes all tools that are not in the list
// from request.tools. `read_name` reads the name of one tool, whose place depends on the API, and
// checks that the tool exists; the name of a hosted tool is empty.
using ReadToolName = std::function<FieldError(const Path& path, Element tool, std::string& name)>;
FieldError read_allowed_tools(const Path& path, const simdjson::dom::object& fields,
                              const RequestLimits& limits, const ReadToolName& read_name,
                              ChatRequest& request);

// Refuses tools that the model may choose to call if the format of its calls is not known, or if
// the chat template ignores tools, so that the model would not receive them.
FieldError check_tools(const ChatRequest& request, const RequestDefaults& defaults);

// Reads a message's role. `developer` becomes `system` unless the template has it in quotation
// marks. The template must have any other role than OpenAI's in quotation marks.
FieldError read_role(const Path& path, const simdjson::dom::object& fields,
                     const RequestDefaults& defaults, std::string& out);

// Returns whether the source of the chat template is known and does not contain this name as a
// word, even in a comment. The variable then has no effect.
bool template_ignores(const RequestDefaults& defaults, std::string_view variable);
// Returns whether the source of the chat template is unknown or contains this text in quotation
// marks, as it does if it compares a role or another value with it.
bool template_may_read(const RequestDefaults& defaults, std::string_view text);

// Reads chat_template_kwargs, which are variables of the template.
FieldError read_template_kwargs(const Path& path, Element value, TemplateValues& values,
                                std::vector<jinja::Dict::Entry>& out);

// Adds a variable or a member to the entries of a dict.
void add_entry(std::string_view name, jinja::Value value, std::vector<jinja::Dict::Entry>& out);
jinja::Value make_dict(std::vector<jinja::Dict::Entry>&& entries);

// Returns `content` with the marker between its text and its trailing white space, which a
// template can still trim.
std::string with_marker(std::string_view content, std::string_view marker);

// Refuses to continue a message without text.
FieldError check_continued(const Path& messages_path, const Continuation& continuation);

// Reads {"type": "function", "function": {…}}, a tool or a tool choice, up to the function's name.
// Sets `fields` to the function's members.
FieldError read_function(const Path& path, Element value, std::string& name,
                         simdjson::dom::object& fields);

}  // namespace quire::server
