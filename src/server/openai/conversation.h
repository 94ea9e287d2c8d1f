// From a call's messages and tools to the variables of the chat template.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/fields.h"
#include "server/openai/parse.h"

namespace quire::server {

// The fields as they came; render() checks them.
struct ConversationFields {
  std::optional<Element> messages;
  std::optional<Element> tools;
  std::optional<Element> documents;
  std::optional<Element> template_kwargs;
  std::optional<Element> reasoning_effort;
  std::optional<bool> add_generation_prompt;
  bool continue_final_message = false;

  // Takes a field that is not null; `taken`: it is one of these.
  Fault read(std::string_view name, Element value, bool& taken);
};

struct Conversation {
  std::string variables;      // a JSON object
  std::string final_role;     // of the last message
  std::string final_content;  // and its text
  std::string final_marker;   // at the end of this text in `variables`; empty: there is none
};

// Whether a template's source has this name as a word, be it in a comment: where it has not, the
// variable changes nothing.
bool mentions_variable(std::string_view chat_template, std::string_view name);

// `shows_tools`: the template gets them.
Fault render_variables(const ConversationFields& fields, bool shows_tools, const CallLimits& limits,
                       Conversation& out);

// Empty unless the call asked for continue_final_message.
std::optional<Continuation> continuation_of(Conversation&& conversation);

Fault read_tools(Element value, const CallLimits& limits, std::vector<Tool>& out);

}  // namespace quire::server
