// Patterns that a Split or a Replace searches for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "tokenizer/search_budget.h"

namespace quire {

struct Match {
  size_t begin;
  size_t end;
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  // Finds the first match that begins at or after `from`. `text` is valid UTF-8, and `from` is at a
  // character boundary.
  virtual std::optional<Match> find(std::string_view text, size_t from,
                                    SearchBudget& budget) const = 0;
};

// Uses a hand-written scanner if there is one for this regex, otherwise compiles it.
Result<std::unique_ptr<Pattern>> make_regex_pattern(std::string_view regex);
std::unique_ptr<Pattern> make_literal_pattern(std::string literal);
// Matches one character with any of these flags (unicode::CharFlag). `ascii_symbols` adds ASCII
// punctuation and symbols.
std::unique_ptr<Pattern> make_flag_pattern(unsigned flags, bool ascii_symbols = false);

// Calls visit(begin, end, is_match) for consecutive parts that cover the whole text.
template <typename Visit>
void for_each_match(const Pattern& pattern, std::string_view text, SearchBudget& budget,
                    Visit visit) {
  size_t covered = 0;
  size_t from = 0;
  while (from <= text.size()) {
    const std::optional<Match> match = pattern.find(text, from, budget);
    if (!match) break;
    const bool is_empty = match->end == match->begin;
    // An empty match directly after another match is skipped.
    if (!is_empty || match->begin != covered || covered == 0) {
      if (match->begin > covered) visit(covered, match->begin, false);
      visit(match->begin, match->end, true);
      covered = match->end;
    }
    from = match->end;
    if (is_empty) {
      do {
        ++from;
      } while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U);
    }
  }
  if (covered < text.size()) visit(covered, text.size(), false);
}

}  // namespace quire
