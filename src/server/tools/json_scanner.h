// Validates JSON byte by byte as it arrives.
#pragma once

#include <cstdint>
#include <string_view>

namespace quire::server {

inline bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// Validates one JSON object or array, strictly by RFC 8259 with at most 64 levels, in constant
// memory. Does not validate UTF-8.
class JsonScanner {
 public:
  enum class State : uint8_t {
    kValue,        // a value must follow
    kFirstValue,   // after '[': a value or ']'
    kFirstKey,     // after '{': a key or '}'
    kKey,          // after ',' in an object
    kColon,        // after a key
    kAfterValue,   // ',' or the end of the container
    kString,       // in a key if string_is_key(), otherwise in a value
    kEscape,       // after '\'
    kHex,          // in \uXXXX
    kNumberMinus,  // '-'
    kNumberZero,   // a leading 0
    kNumberInt,    // digits
    kNumberDot,    // '.'
    kNumberFrac,   // digits after '.'
    kNumberE,      // 'e'
    kNumberESign,  // 'e-'
    kNumberExp,    // digits after 'e'
    kLiteral,      // in true, false, null
    kDone,
  };

  // Returns false if `c` is invalid here. Nothing may be pushed after that, or once done().
  bool push(char c);
  bool done() const { return state_ == State::kDone; }

  State state() const { return state_; }
  int depth() const { return depth_; }
  // Returns the byte that ends the innermost container. depth() must not be 0.
  char closer() const { return in_object() ? '}' : ']'; }
  bool in_string() const {
    return state_ == State::kString || state_ == State::kEscape || state_ == State::kHex;
  }
  bool string_is_key() const { return string_is_key_; }
  // Returns whether the next non-space byte starts a value.
  bool expects_value() const { return state_ == State::kValue || state_ == State::kFirstValue; }
  // Returns whether the innermost container may end here.
  bool can_close() const {
    return state_ == State::kAfterValue || state_ == State::kFirstKey ||
           state_ == State::kFirstValue || state_ == State::kNumberZero ||
           state_ == State::kNumberInt || state_ == State::kNumberFrac ||
           state_ == State::kNumberExp;
  }

 private:
  // A value that is returned to a client comes back within other levels of its next request, whose
  // depth is limited to 64.
  static constexpr int kMaxDepth = 56;

  bool begin_value(char c);
  bool open(bool is_object);
  bool close(bool is_object);
  bool in_object() const { return ((is_object_ >> (depth_ - 1)) & 1U) != 0; }
  bool push_string(char c);
  bool push_number(char c);
  bool push_literal(char c);
  bool push_after_value(char c);
  bool to(State state) {
    state_ = state;
    return true;
  }

  State state_ = State::kValue;
  bool string_is_key_ = false;
  uint8_t num_hex_ = 0;
  int depth_ = 0;
  uint64_t is_object_ = 0;    // bit i: level i + 1 is an object
  std::string_view literal_;  // the rest that must follow
};

}  // namespace quire::server
