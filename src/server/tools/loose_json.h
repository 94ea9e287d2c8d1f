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
  bool unquoted_keys = false;  // keys and string values may be unquoted words: {unit:celsius}
  // Values are Python literals. The text begins after the opening parenthesis of a call:
  // name=value, name=value)
  bool python = false;
  // Pairs of texts that delimit a string without escapes.
  std::vector<std::pair<std::string, std::string>> string_delims = {};
};

// Appends `text` with JSON's escapes, without quotes.
void append_escaped(std::string& out, std::string_view text);
bool is_json_number(std::string_view text);

// Translates one value from a notation into JSON. Also repairs slips within strings: raw control
// characters are escaped, the backslash of an invalid escape is doubled, and half a surrogate pair
// is replaced by U+FFFD, because most parsers refuse it. A byte that the notation does not allow is
// refused.
class LooseJson {
 public:
  // `notation` must outlive the object.
  explicit LooseJson(const JsonNotation& notation) : notation_(&notation) {}

  // Passes the JSON for `c` to `emit(char) -> bool`, which pushes it to `json` and returns whether
  // it is valid. Returns false if `emit` does, or if `c` is not part of the value; a word before
  // `c` may have been emitted then.
  template <typename Emit>
  bool push(char c, const JsonScanner& json, Emit emit) {
    output_.clear();
    if (!translate(c, json)) return false;
    return emit_all(emit);
  }

  // Emits the bare word that has begun, if any. Call it before closing brackets are added.
  template <typename Emit>
  bool end_word(Emit emit) {
    output_.clear();
    if (state_ != State::kWord) return true;
    return flush_word() && emit_all(emit);
  }

  // Returns whether a string with delimiters of its own is open.
  bool in_delimited() const { return state_ == State::kDelimited; }
  // Returns whether a string with its own delimiters, such a delimiter, or an escape is incomplete.
  bool must_continue() const { return state_ != State::kPlain && state_ != State::kWord; }

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
  size_t delim_ = 0;            // the open string's pair in string_delims
  std::string pending_;         // an escape, a word or a part of a delimiter
  std::string high_surrogate_;  // the escape of a pair's first half, until the second half follows
  std::string output_;
};

}  // namespace quire::server
