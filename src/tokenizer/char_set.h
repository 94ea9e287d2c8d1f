// Character classes of regexes as data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/unicode.h"

namespace quire {

// A class such as `\p{L}`, `\s`, `[a-z\p{M}]`, `[^\r\n]` or `x`, without case folding.
class CharSet {
 public:
  // Parses one class at the front of `regex` and removes it; nullopt if there is no such class.
  static std::optional<CharSet> parse(std::string_view& regex);

  bool contains(const unicode::Char& c) const {
    if (c.code_point < 128) return ascii_[c.code_point];
    return contains_slow(c.code_point, c.flags);
  }

 private:
  struct Item {
    char32_t code_point = 0;
    uint16_t flags = 0;  // not 0: a class such as \p{L}; code_point is unused
  };
  static std::optional<Item> parse_item(std::string_view& regex, bool in_brackets);
  bool contains_slow(char32_t code_point, uint16_t flags) const;
  void finish();

  uint16_t flags_ = 0;
  bool negated_ = false;
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // inclusive, sorted
  std::array<bool, 128> ascii_{};
};

}  // namespace quire
