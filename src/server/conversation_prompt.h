// Renders the prompt of a conversation, in a form that the model's chat template can write.
#pragma once

#include <memory>
#include <optional>

#include "base/marked_text.h"
#include "jinja/chat_template.h"
#include "jinja/value.h"
#include "server/engine_api.h"
#include "server/openai/api_error.h"
#include "server/openai/requests.h"
#include "server/tools/response_template.h"

namespace quire::server {

// The parts of a conversation that the model's chat template can write.
struct HistoryForm {
  bool has_calls = true;             // an assistant's tool_calls
  bool has_results = true;           // messages of the role "tool"
  bool has_successive_users = true;  // two messages of the user without an answer between them
  bool has_parallel_calls = true;    // several calls in one message
  bool has_content_beside_calls = true;
  bool has_long_ids = true;  // ids of calls that are not nine letters or digits
  bool has_tools_without_description = true;
  bool has_tools_without_parameters = true;
  bool has_tools = true;   // false: they are written as text, see kToolsAsText
  bool has_system = true;  // a system message, which then has the tools' text
  // Writes the calls if the template cannot: in the model's dialect, otherwise as JSON.
  std::shared_ptr<const ChatTemplate> calls_as_text = {};
};

// The generic prompt of tools: the text that a system message gets, otherwise the first message of
// the user, if the chat template has no place for tools (--generic-tools). The model answers in the
// dialect "hermes".
inline constexpr std::string_view kToolsAsText =
    "You may call tools to answer. The tools, one JSON object per line:\n"
    "{% for tool in tools %}{{ tool.function | tojson }}\n{% endfor %}"
    "To call a tool, answer with nothing but this, once per call:\n"
    "<tool_call>\n{\"name\": \"the tool's name\", \"arguments\": {\"parameter\": "
    "value}}\n</tool_call>\n"
    "The next message then has the result of the call. If you need no tool, answer in plain text.";
inline constexpr std::string_view kGenericDialect = "hermes";

// Finds the form by rendering trial conversations, so call it once per template. `calls` is the
// dialect of the model's calls, or null if it is not known. `has_generic_tools`: tools are written
// as text.
HistoryForm find_history_form(const EngineApi& engine, const ResponseTemplate* calls,
                              bool has_generic_tools = false);

// Renders the conversation by the model's chat template into `out`. The conversation is first
// changed into a form that the template can write:
// - Calls and results for which the template has no form become texts of the assistant and of the
//   user, because a client sends the calls of every response back. If the template refuses
//   successive messages of the user, a result joins the user's message beside it.
// - If the template drops content beside calls, calls whose arguments are not a JSON object become
//   text too, because the content has these arguments.
// - If the template refuses several calls in a message, each gets a message of its own, followed by
//   its result.
// - If the template refuses long ids of calls, ids become nine letters or digits.
// - If the template fails without them, a tool gets an empty description or an empty schema of
//   parameters. If the form says so, all tools become text.
// - If the template fails or drops a message, because it allows only one system message, at the
//   start, all system messages are merged into one.
//
// A message of which nothing reaches the prompt is an error that names it. If calls of the message
// to continue become text, the response continues this text, so `input.continuation` changes. If
// they stay calls, the request is an error, because the template writes them after the text to
// continue.
std::optional<ApiError> render_conversation(const EngineApi& engine, const HistoryForm& form,
                                            TemplateInput& input, MarkedText& out);

// Returns the variables with all texts of system and developer messages in the first message, in
// their order; nothing if there are none after the first message.
std::optional<jinja::Value> with_merged_system(const jinja::Value& variables);

}  // namespace quire::server
