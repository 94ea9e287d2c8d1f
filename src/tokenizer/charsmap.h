// SentencePiece's compiled normalization rules: a Darts double array. It maps UTF-8 prefixes to
// offsets in a block of NUL-terminated replacements (sentencepiece, src/normalizer.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/pattern.h"

namespace quire {

class Charsmap {
 public:
  static Result<Charsmap> parse(std::string_view blob);

  struct Rule {
    size_t num_bytes;  // bytes of the text that the rule replaces
    std::string_view replacement;
  };
  // Returns the rule of the shortest (longest) prefix of `text` that has one. The budget is charged
  // for the walk through the trie, which can be as long as the text, and for the replacement.
  std::optional<Rule> shortest_rule(std::string_view text, SearchBudget& budget) const {
    return find(text, true, budget);
  }
  std::optional<Rule> longest_rule(std::string_view text, SearchBudget& budget) const {
    return find(text, false, budget);
  }

 private:
  std::optional<Rule> find(std::string_view text, bool stop_at_first, SearchBudget& budget) const;
  std::string_view replacement_at(uint32_t offset) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace quire
