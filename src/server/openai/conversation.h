// Converts a request's messages and tools into the variables of the chat template.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  std::optional<Element> chat_template;

  // Returns the member for a field of the body, or null if the name is none of these.
  std::optional<Element>* find(std::string_view name);
};

struct Conversation {
  jinja::Value variables;
  std::string final_role;     // of the last message
  std::string final_content;  // text of the last message
  std::string final_marker;   // random text at the end of final_content in `variables`; empty: none
};

// Returns whether a template's source contains this name as a word, even if in a comment. If it
// does not, the variable has no effect.
bool mentions_variable(std::string_view chat_template, std::string_view name);

// Reads the template's variables into `out`, with the tools in `shown_tools`, which are some of
// those that read_tools() has read from `fields`.
FieldError read_conversation(const ConversationFields& fields, std::span<const Tool> shown_tools,
                             const RequestLimits& limits, Conversation& out);

// Moves the variables out, and the continuation if the request asked for continue_final_message.
TemplateInput template_input(Conversation&& conversation);

// Reads the tools, whose names must differ.
FieldError read_tools(Element value, const RequestLimits& limits, std::vector<Tool>& out);
// Returns the tool with this name, or null.
const Tool* find_tool(std::span<const Tool> tools, std::string_view name);

// Reads {"type": "function", "function": {…}}, a tool or a tool choice, up to the function's name.
// `fields` are those of the function.
FieldError read_function(const Path& path, Element value, std::string& name,
                         simdjson::dom::object& fields);

}  // namespace quire::server
