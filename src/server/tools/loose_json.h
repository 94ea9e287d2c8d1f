// Turns the notations in which models write values into strict JSON, byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tools/json_scanner.h"

namespace quire::server {

// How a value's text differs from JSON.
struct JsonNotation {
  bool unquoted_keys = false;  // also bare words as values: {unit:celsius}
  // Python's literals. The outermost level is the arguments of a call: name=value, …) .
  bool python = false;
  // Pairs of texts that delimit a string without escapes.
  std::vector<std::pair<std::string, std::string>> string_delims = {};
};

// Appends the JSON string's inner text for `text`, without quotes.
void append_escaped(std::string& out, std::string_view text);
bool is_json_number(std::string_view text);

// Repairs slips within strings: raw control characters are escaped, the backslash of an invalid
// escape is doubled, and half a surrogate pair is replaced by U+FFFD, because most readers of JSON
// refuse it. Everything else that is not in the notation is refused.
class LooseJson {
 public:
  explicit LooseJson(const JsonNotation& notation) : notation_(&notation) {}

  // Passes the JSON for `c` to `emit(char) -> bool`, which pushes it to `json` and returns whether
  // it is valid. Returns false if `c` is not part of the value; `c` was not taken then.
  template <typename Emit>
  bool push(char c, const JsonScanner& json, Emit emit) {
    output_.clear();
    if (!translate(c, json)) return false;
    return emit_all(emit);
  }

  // Ends a bare word. Call before the value is closed from outside.
  template <typename Emit>
  bool end_word(Emit emit) {
    output_.clear();
    if (state_ != State::kWord) return true;
    return flush_word() && emit_all(emit);
  }

  // Returns whether a string with delimiters of its own is open.
  bool in_delimited() const { return state_ == State::kDelimited; }
  // Returns whether such a string, or an escape, is still open.
  bool is_mid_token() const { return state_ != State::kPlain && state_ != State::kWord; }

 private:
  enum class State : uint8_t { kPlain, kEscape, kWord, kOpening, kDelimited };

  template <typename Emit>
  bool emit_all(Emit emit) {
    for (const char b : output_) {
      if (!emit(b)) return false;
    }
    return true;
  }

  bool translate(char c, const JsonScanner& json);
  void push_delimited(char c);
  bool push_in_string(char c);
  bool push_escape(char c);
  void end_code_unit();
  void end_pair();
  bool end_escape(char c);
  bool push_opening(char c);
  bool push_outside(char c, const JsonScanner& json);
  bool begins_word(char c, const JsonScanner& json) const;
  bool continues_word(char c) const;
  bool flush_word();

  const JsonNotation* notation_;
  State state_ = State::kPlain;
  char quote_ = '"';
  bool word_is_key_ = false;
  size_t delim_ = 0;     // the open string's pair in string_delims
  std::string pending_;  // an escape, a word or a part of a delimiter
  std::string high_;     // the escape of the first half of a surrogate pair
  std::string output_;
};

}  // namespace quire::server
