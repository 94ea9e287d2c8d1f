#include "server/tools/json_scanner.h"

#include "base/ascii.h"

namespace quire::server {

bool JsonScanner::open(bool is_object) {
  if (depth_ == kMaxDepth) return false;
  const uint64_t bit = uint64_t{1} << depth_;
  is_object_ = is_object ? is_object_ | bit : is_object_ & ~bit;
  ++depth_;
  return to(is_object ? State::kFirstKey : State::kFirstValue);
}

bool JsonScanner::close(bool is_object) {
  if (depth_ == 0 || in_object() != is_object) return false;
  --depth_;
  return to(depth_ == 0 ? State::kDone : State::kAfterValue);
}

bool JsonScanner::begin_value(char c) {
  if (c == '{') return open(true);
  if (c == '[') return open(false);
  if (depth_ == 0) return false;
  string_is_key_ = false;
  switch (c) {
    case '"':
      return to(State::kString);
    case '-':
      return to(State::kNumberMinus);
    case '0':
      return to(State::kNumberZero);
    case 't':
      literal_ = "rue";
      return to(State::kLiteral);
    case 'f':
      literal_ = "alse";
      return to(State::kLiteral);
    case 'n':
      literal_ = "ull";
      return to(State::kLiteral);
    default:
      return is_digit(c) && to(State::kNumberInt);
  }
}

bool JsonScanner::push_string(char c) {
  if (state_ == State::kEscape) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    num_hex_ = 0;
    if (c == 'u') return to(State::kHex);
    return kEscapes.find(c) != std::string_view::npos && to(State::kString);
  }
  if (state_ == State::kHex) {
    if (hex_digit(c) < 0) return false;
    return ++num_hex_ < 4 || to(State::kString);
  }
  if (c == '\\') return to(State::kEscape);
  if (c == '"') return to(string_is_key_ ? State::kColon : State::kAfterValue);
  return static_cast<unsigned char>(c) >= 0x20;
}

bool JsonScanner::push_number(char c) {
  const bool digit = is_digit(c);
  const bool is_e = c == 'e' || c == 'E';
  switch (state_) {
    case State::kNumberMinus:
      return digit && to(c == '0' ? State::kNumberZero : State::kNumberInt);
    case State::kNumberDot:
      return digit && to(State::kNumberFrac);
    case State::kNumberE:
      if (c == '+' || c == '-') return to(State::kNumberESign);
      return digit && to(State::kNumberExp);
    case State::kNumberESign:
      return digit && to(State::kNumberExp);
    case State::kNumberZero:
    case State::kNumberInt:
      if (digit) return state_ == State::kNumberInt;
      if (c == '.') return to(State::kNumberDot);
      if (is_e) return to(State::kNumberE);
      break;
    case State::kNumberFrac:
      if (digit) return true;
      if (is_e) return to(State::kNumberE);
      break;
    default:
      if (digit) return true;
  }
  state_ = State::kAfterValue;
  return push_after_value(c);
}

bool JsonScanner::push_literal(char c) {
  if (c != literal_.front()) return false;
  literal_.remove_prefix(1);
  return !literal_.empty() || to(State::kAfterValue);
}

bool JsonScanner::push_after_value(char c) {
  if (is_json_space(c)) return true;
  if (c == ',') return to(in_object() ? State::kKey : State::kValue);
  if (c == '}') return close(true);
  return c == ']' && close(false);
}

bool JsonScanner::push(char c) {
  if (in_string()) return push_string(c);
  if (state_ == State::kAfterValue) return push_after_value(c);
  if (state_ == State::kLiteral) return push_literal(c);
  if (state_ >= State::kNumberMinus && state_ <= State::kNumberExp) return push_number(c);
  if (is_json_space(c)) return state_ != State::kDone;
  switch (state_) {
    case State::kFirstValue:
      return c == ']' ? close(false) : begin_value(c);
    case State::kValue:
      return begin_value(c);
    case State::kFirstKey:
    case State::kKey:
      if (c == '}' && state_ == State::kFirstKey) return close(true);
      string_is_key_ = true;
      return c == '"' && to(State::kString);
    case State::kColon:
      return c == ':' && to(State::kValue);
    default:
      return false;
  }
}

}  // namespace quire::server
