#pragma once

#include <algorithm>
#include <cstddef>

namespace quire {

// Limits the work of a tokenizer's rules in one text, in steps of a regex. The limit is a multiple
// of the text's size, so that hostile rules, whose searches are quadratic or worse, cannot take
// long. Everything that the tokenizer's file can make slow spends from it: regexes, walks through
// tries, inserted text.
class SearchBudget {
 public:
  explicit SearchBudget(size_t text_bytes) : num_left_((size_t{1} << 24) + 256 * text_bytes) {}

  // Once it is spent, nothing more is found, and the results so far are invalid.
  void spend(size_t num_steps) { num_left_ -= std::min(num_left_, num_steps); }
  // Text that a rule puts in the place of other text: bounds how much a text can grow.
  void spend_inserted(size_t num_bytes) { spend(16 * num_bytes); }
  void spend_all() { num_left_ = 0; }
  bool is_spent() const { return num_left_ == 0; }

 private:
  size_t num_left_;
};

}  // namespace quire
