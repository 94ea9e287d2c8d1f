// Converts a call's messages and tools into the variables of the chat template.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/json_fields.h"
#include "server/openai/requests.h"

namespace quire::server {

// The fields as received; render_variables() checks them.
struct ConversationFields {
  std::optional<Element> messages;
  std::optional<Element> tools;
  std::optional<Element> documents;
  std::optional<Element> template_kwargs;
  std::optional<Element> reasoning_effort;
  std::optional<bool> add_generation_prompt;
  bool continue_final_message = false;

  // Reads a field that is not null; sets `taken` to whether it is one of these fields.
  FieldError read(std::string_view name, Element value, bool& taken);
};

struct Conversation {
  std::string variables;      // a JSON object
  std::string final_role;     // of the last message
  std::string final_content;  // text of the last message
  std::string final_marker;   // random text at the end of final_content in `variables`; empty: none
};

// Returns whether a template's source contains this name as a word, even if in a comment. If it
// does not, the variable has no effect.
bool mentions_variable(std::string_view chat_template, std::string_view name);

// Renders the template's variables into `out`; `shows_tools` includes the tools.
FieldError render_variables(const ConversationFields& fields, bool shows_tools,
                            const RequestLimits& limits, Conversation& out);

// Returns a value only if the call asked for continue_final_message.
std::optional<Continuation> continuation_of(Conversation&& conversation);

FieldError read_tools(Element value, const RequestLimits& limits, std::vector<Tool>& out);

}  // namespace quire::server
