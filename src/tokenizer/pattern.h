// Patterns that a Split or a Replace searches for, and the budget of a search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "tokenizer/unicode.h"

namespace quire {

// Limits the work of a tokenizer's rules on one text, in steps of a regex search. The limit is
// proportional to the text's size, so that hostile rules with quadratic or slower searches stop
// early. The budget is charged for all operations that the tokenizer's file can make slow: regexes,
// trie walks and inserted text.
class SearchBudget {
 public:
  explicit SearchBudget(size_t text_bytes) : num_left_((size_t{1} << 24) + 256 * text_bytes) {}

  // After the budget is spent, searches find no further matches, and the results so far are
  // invalid.
  void spend(size_t num_steps) { num_left_ -= std::min(num_left_, num_steps); }
  // Charges for text that a rule inserts, which limits the growth of a text.
  void spend_inserted(size_t num_bytes) { spend(16 * num_bytes); }
  void spend_all() { num_left_ = 0; }
  bool is_spent() const { return num_left_ == 0; }

 private:
  size_t num_left_;
};

struct Match {
  size_t begin;
  size_t end;
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  // Finds the first match that begins at or after `from`. `text` must be valid UTF-8, and `from`
  // must be at a character boundary.
  virtual std::optional<Match> find(std::string_view text, size_t from,
                                    SearchBudget& budget) const = 0;
};

// Uses a hand-written scanner (scanners.h) if there is one for this regex, otherwise compiles the
// regex.
Result<std::unique_ptr<Pattern>> make_regex_pattern(std::string_view regex);
// PCRE2 with a budget. `pattern` is in Oniguruma's dialect, as in tokenizer.json. Fails on
// constructs that have a different meaning in PCRE2. A search charges its steps to the budget of
// the text.
Result<std::unique_ptr<Pattern>> compile_regex(std::string_view pattern);
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
      } while (from < text.size() && unicode::is_continuation(text[from]));
    }
  }
  if (covered < text.size()) visit(covered, text.size(), false);
}

}  // namespace quire
