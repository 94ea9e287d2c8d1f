// The prompt of a conversation.
#pragma once

#include <optional>

#include "base/marked_text.h"
#include "jinja/value.h"
#include "server/engine_api.h"
#include "server/openai/api_error.h"
#include "server/openai/requests.h"

namespace quire::server {

// The parts of a history that the model's chat template can write.
struct HistoryForm {
  bool has_calls = true;             // an assistant's tool_calls
  bool has_results = true;           // messages of the role "tool"
  bool has_successive_users = true;  // two messages of the user without an answer between them
};

// Finds the form by trial renderings. Call it once per template.
HistoryForm find_history_form(const EngineApi& engine);

// Renders the conversation by the model's chat template into `out`. Calls and results for which the
// template has no form are written as texts of the assistant and of the user, because a client
// sends the calls of every response back. If the template fails, or drops a message, because it
// allows only one system message, at the start, all system messages are merged into that one. A
// message of which nothing reaches the prompt is an error that names it.
std::optional<ApiError> render_conversation(const EngineApi& engine, const HistoryForm& form,
                                            const TemplateInput& input, MarkedText& out);

// Returns the variables with all texts of system and developer messages in the first message, in
// their order; nothing if there are none after the first message.
std::optional<jinja::Value> with_merged_system(const jinja::Value& variables);

}  // namespace quire::server
