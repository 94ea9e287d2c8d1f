#pragma once

#include <functional>
#include <vector>

#include "quire/engine.h"
#include "quire/status.h"

namespace quire::cli {

// Once a conversation takes more than max_tokens, drops the oldest exchanges (a user's turn and its
// answer) until it takes at most half of them, as far as it can: a beginning that changed with
// every turn would never be found in the prefix cache. A system message at the front and the last
// turn always stay. Returns how many messages were dropped. num_tokens counts what the template
// makes of a conversation.
using CountTokens = std::function<Result<int>(const std::vector<ChatMessage>& messages)>;
Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens);

}  // namespace quire::cli
