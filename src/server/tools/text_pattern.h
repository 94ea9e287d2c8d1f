// Regular expressions of a checkpoint's own response template.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/status.h"

namespace quire::server {

// A compiled pattern. A search is bounded: it takes at most 10,000 steps at one place, and match()
// reads at most 4 KiB of text; find() reads the whole text. A search that reaches a bound finds
// nothing. Works on bytes, so \w has only ASCII letters. ^ and lookbehind do not read the text
// before the place. Thread-safe.
class TextPattern {
 public:
  enum class Result { kNo, kMore, kYes };
  struct Found {
    Result result = Result::kNo;
    size_t begin = 0;
    size_t end = 0;
    // Named groups that took part in the match.
    std::vector<std::pair<std::string, std::string_view>> groups = {};

    std::string_view group(std::string_view name) const;
  };

  static quire::Result<std::shared_ptr<const TextPattern>> compile(std::string_view pattern);

  // Matches at the start of the text. An empty match does not count. kMore: more text could make or
  // change a match; never if `is_end`.
  Found match(std::string_view text, bool is_end) const;
  // Searches the whole text from `from` on.
  Found find(std::string_view text, size_t from) const;
  bool has_group(std::string_view name) const;
  // Returns the byte that every match begins with, or -1.
  int first_byte() const { return first_byte_; }

  struct Code;
  explicit TextPattern(std::unique_ptr<Code> code);
  ~TextPattern();

 private:
  Found read_match(std::string_view text, const size_t* ends) const;

  std::unique_ptr<Code> code_;
  int first_byte_ = -1;
  std::vector<std::pair<std::string, size_t>> groups_;  // names and numbers
};

}  // namespace quire::server
