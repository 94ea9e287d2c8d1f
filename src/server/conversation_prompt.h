// The prompt of a conversation.
#pragma once

#include <optional>

#include "base/marked_text.h"
#include "jinja/value.h"
#include "server/engine_api.h"
#include "server/openai/api_error.h"
#include "server/openai/requests.h"

namespace quire::server {

// Renders the conversation by the model's chat template into `out`. If the template fails, or drops
// a message, because it allows only one system message, at the start, all system messages are
// merged into that one. A message of which nothing reaches the prompt is an error that names it.
std::optional<ApiError> render_conversation(const EngineApi& engine, const TemplateInput& input,
                                            MarkedText& out);

// Returns the variables with all texts of system and developer messages in the first message, in
// their order; nothing if there are none after the first message.
std::optional<jinja::Value> with_merged_system(const jinja::Value& variables);

}  // namespace quire::server
