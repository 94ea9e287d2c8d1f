#pragma once

#include <algorithm>
#include <cstddef>

namespace quire {

// Limits the work that a tokenizer's rules may take for one text, in steps of a regex search. The
// limit is proportional to the text's size, so that hostile rules with quadratic or slower searches
// end early. All operations that the tokenizer's file can make slow are charged: regexes, trie
// walks and inserted text.
class SearchBudget {
 public:
  explicit SearchBudget(size_t text_bytes) : num_left_((size_t{1} << 24) + 256 * text_bytes) {}

  // When the budget is spent, searches find nothing more and the results so far are invalid.
  void spend(size_t num_steps) { num_left_ -= std::min(num_left_, num_steps); }
  // Charges text that a rule inserts, which bounds the growth of a text.
  void spend_inserted(size_t num_bytes) { spend(16 * num_bytes); }
  void spend_all() { num_left_ = 0; }
  bool is_spent() const { return num_left_ == 0; }

 private:
  size_t num_left_;
};

}  // namespace quire
