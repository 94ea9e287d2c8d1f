#pragma once

#include <functional>
#include <vector>

#include "quire/engine.h"
#include "quire/status.h"

namespace quire::cli {

// If a conversation exceeds max_tokens, drops the oldest exchanges (a user turn and its reply)
// until it takes at most half of max_tokens, as far as possible. Dropping a few per turn would
// change the prefix every turn, so the prefix cache would never hit. A leading system message and
// the last turn always stay. Returns the number of dropped messages. num_tokens counts the tokens
// of a conversation after the template is applied.
using CountTokens = std::function<Result<int>(const std::vector<ChatMessage>& messages)>;
Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens);

}  // namespace quire::cli
