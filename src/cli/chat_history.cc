#include "cli/chat_history.h"

#include <fmt/format.h>

#include <algorithm>

namespace quire::cli {

Result<int> trim_history(std::vector<ChatMessage>& messages, int max_tokens,
                         const CountTokens& num_tokens) {
  const size_t first = !messages.empty() && messages.front().role == "system" ? 1 : 0;
  int num_dropped = 0;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const int count, num_tokens(messages));
    // Drops whole exchanges, because templates refuse two turns of one role in a row.
    const bool can_drop = messages.size() >= first + 3;
    const bool is_full = count > max_tokens;
    const bool makes_room = num_dropped > 0 && count > max_tokens / 2;
    if (!is_full && !(makes_room && can_drop)) return num_dropped;
    if (!can_drop) {
      return invalid_argument(fmt::format(
          "[chat] the message is too long; got {} tokens, expected at most {}", count, max_tokens));
    }
    const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(first);
    messages.erase(begin, begin + 2);
    num_dropped += 2;
  }
}

}  // namespace quire::cli
