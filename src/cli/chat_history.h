#pragma once

#include <functional>
#include <vector>

#include "quire/engine.h"
#include "quire/status.h"

namespace quire::cli {

// Drops the oldest exchanges (a user's turn and its answer) until the conversation takes at most
// max_tokens; a system message at the front and the last turn always stay. Returns how many
// messages were dropped. num_tokens counts what the template makes of a conversation.
using CountTokens = std::function<Result<int>(const std::vector<ChatMessage>& messages)>;
Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens);

}  // namespace quire::cli
