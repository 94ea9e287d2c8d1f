// Writes text with some characters replaced by escapes, charging the budget.
#pragma once

#include <string>
#include <string_view>

#include "jinja/budget.h"
#include "jinja/unicode.h"

namespace quire::jinja {

// Calls `escape` with each character and its bytes. An empty result keeps the character.
template <typename Escape>
void write_escaped(std::string_view text, TextBuilder& out, Escape escape) {
  constexpr size_t kMaxPending = 4096;  // bytes scanned before they are charged
  const char* pending = text.data();
  for (const auto& [c, bytes] : Chars(text)) {
    const std::string escaped = escape(c, bytes);
    const auto num_pending = static_cast<size_t>(bytes.data() - pending);
    if (escaped.empty() && num_pending < kMaxPending) continue;
    out.append({pending, num_pending});
    out.append(escaped);
    pending = bytes.data() + (escaped.empty() ? 0 : bytes.size());
  }
  out.append(text.substr(static_cast<size_t>(pending - text.data())));
}

}  // namespace quire::jinja
