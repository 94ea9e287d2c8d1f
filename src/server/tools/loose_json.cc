#include "server/tools/loose_json.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/ascii.h"

namespace quire::server {
namespace {

constexpr size_t kMaxWordBytes = 1024;
constexpr std::string_view kReplacement = "\\ufffd";

bool is_letter(char c) {
  return is_alphanumeric(c) && !is_digit(c);
}

bool is_word_byte(char c) {
  return is_alphanumeric(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

void append_escaped_byte(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  } else {
    out += c;
  }
}

bool expects_key(const JsonScanner& json) {
  return json.state() == JsonScanner::State::kFirstKey || json.state() == JsonScanner::State::kKey;
}

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) append_escaped_byte(out, c);
}

bool is_json_number(std::string_view text) {
  if (text.empty() || (text.front() != '-' && !is_digit(text.front()))) return false;
  JsonScanner json;
  bool is_valid = json.push('[');
  for (const char c : text) is_valid = is_valid && json.push(c) && json.depth() == 1;
  return is_valid && json.state() != JsonScanner::State::kValue && json.push(']');
}

bool LooseJson::translate(char c, const JsonScanner& json) {
  switch (state_) {
    case State::kDelimited:
      push_delimited(c);
      return true;
    case State::kEscape:
      return push_escape(c);
    case State::kOpening:
      return push_opening(c);
    case State::kWord:
      if (continues_word(c)) {
        pending_ += c;
        return pending_.size() <= kMaxWordBytes;
      }
      // Ends the word first, because the meaning of `c` depends on the state after the word. At the
      // outermost level of a Python call, '=' must follow a key, and ',' or ')' a value.
      if (!flush_word()) return false;
      if (is_json_space(c)) return true;
      if (notation_->python && json.depth() == 1) {
        const bool is_valid = word_is_key_ ? c == '=' : c == ',' || c == ')';
        if (!is_valid) c = '\0';  // valid nowhere, but the word before it counts
        output_ += !is_valid ? c : word_is_key_ ? ':' : (c == ')' ? '}' : ',');
        return true;
      }
      output_ += c;
      return true;
    case State::kPlain:
      break;
  }
  return json.in_string() ? push_in_string(c) : push_outside(c, json);
}

// Searches for the end of a string with its own delimiters.
void LooseJson::push_delimited(char c) {
  const std::string& close = notation_->string_delims[delim_].second;
  pending_ += c;
  while (!close.starts_with(pending_)) {
    append_escaped_byte(output_, pending_.front());
    pending_.erase(0, 1);
  }
  if (pending_.size() < close.size()) return;
  pending_.clear();
  output_ += '"';
  state_ = State::kPlain;
}

bool LooseJson::push_in_string(char c) {
  if (c == '\\') {
    state_ = State::kEscape;
    pending_ = c;
    return true;
  }
  end_pair();
  if (c == quote_) {
    output_ += '"';
  } else {
    append_escaped_byte(output_, c);
  }
  return true;
}

bool LooseJson::push_escape(char c) {
  if (pending_.size() == 1) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    if (c == 'u' || (c == 'x' && notation_->python)) {
      pending_ += c;
      return true;
    }
    if (kEscapes.find(c) != std::string_view::npos) {
      end_pair();
      output_ += pending_;
      output_ += c;
      state_ = State::kPlain;
      return true;
    }
    if (c == '\'' && notation_->python) {
      end_pair();
      output_ += c;
      state_ = State::kPlain;
      return true;
    }
    return end_escape(c);
  }
  if (hex_digit(c) < 0) return end_escape(c);
  pending_ += c;
  const bool is_byte = pending_[1] == 'x';
  if (pending_.size() < (is_byte ? 4U : 6U)) return true;
  if (is_byte) pending_ = "\\u00" + pending_.substr(2);
  end_code_unit();
  state_ = State::kPlain;
  return true;
}

// Writes the escape \uXXXX, or holds it if it begins a surrogate pair.
void LooseJson::end_code_unit() {
  const bool is_surrogate =
      (pending_[2] == 'd' || pending_[2] == 'D') && hex_digit(pending_[3]) >= 8;
  const bool is_low = is_surrogate && hex_digit(pending_[3]) >= 12;
  if (is_low && !high_surrogate_.empty()) {
    output_ += std::exchange(high_surrogate_, {}) + pending_;
    return;
  }
  end_pair();
  if (is_surrogate && !is_low) {
    high_surrogate_ = pending_;
  } else {
    output_ += is_low ? kReplacement : pending_;
  }
}

// Writes U+FFFD in place of the first half of a pair, if its second half did not follow.
void LooseJson::end_pair() {
  if (!high_surrogate_.empty()) output_ += kReplacement;
  high_surrogate_.clear();
}

// Ends an invalid escape: its backslash becomes text.
bool LooseJson::end_escape(char c) {
  end_pair();
  output_ += "\\\\";
  output_ += pending_.substr(1);
  state_ = State::kPlain;
  return push_in_string(c);
}

bool LooseJson::push_opening(char c) {
  pending_ += c;
  for (size_t i = 0; i < notation_->string_delims.size(); ++i) {
    const std::string& open = notation_->string_delims[i].first;
    if (!open.starts_with(pending_)) continue;
    if (open.size() == pending_.size()) {
      delim_ = i;
      output_ += '"';
      pending_.clear();
      state_ = State::kDelimited;
    }
    return true;
  }
  return false;
}

bool LooseJson::begins_word(char c, const JsonScanner& json) const {
  const bool is_key = expects_key(json);
  if (notation_->python) {
    if (is_key) return json.depth() == 1 && is_word_byte(c) && !is_digit(c);
    return json.expects_value() && is_letter(c);
  }
  if (!notation_->unquoted_keys) return false;
  return is_key ? is_word_byte(c) : json.expects_value() && (is_word_byte(c) || c == '-');
}

bool LooseJson::continues_word(char c) const {
  if (notation_->python || word_is_key_) return is_word_byte(c) || (word_is_key_ && c == '-');
  constexpr std::string_view kEnds = ",}]{[<\"";
  return kEnds.find(c) == std::string_view::npos && static_cast<unsigned char>(c) >= 0x20;
}

bool LooseJson::push_outside(char c, const JsonScanner& json) {
  for (const auto& delim : notation_->string_delims) {
    const bool may_open = expects_key(json) || json.expects_value();
    if (!may_open || c != delim.first.front()) continue;
    state_ = State::kOpening;
    pending_.clear();
    return push_opening(c);
  }
  if (begins_word(c, json)) {
    word_is_key_ = expects_key(json);
    state_ = State::kWord;
    pending_ = c;
    return true;
  }
  if (notation_->python && json.depth() == 1) {
    if (is_json_space(c)) return true;
    if (expects_key(json) && c != ')') return false;
    if (c == ':' || c == '}') return false;
    if (c == '=') c = ':';
    if (c == ')') c = '}';
  }
  if (c == '"' || (c == '\'' && notation_->python)) {
    quote_ = c;
    c = '"';
  }
  output_ += c;
  return true;
}

bool LooseJson::flush_word() {
  if (word_is_key_) {
    state_ = State::kPlain;
    output_ += '"';
    append_escaped(output_, pending_);
    output_ += '"';
    return true;
  }
  if (notation_->python) {
    if (pending_ == "True" || pending_ == "true") {
      output_ += "true";
    } else if (pending_ == "False" || pending_ == "false") {
      output_ += "false";
    } else if (pending_ == "None" || pending_ == "null") {
      output_ += "null";
    }
    if (!output_.empty()) state_ = State::kPlain;
    return !output_.empty();
  }
  state_ = State::kPlain;
  const std::string_view word = trimmed(pending_);
  const bool is_literal = word == "true" || word == "false" || word == "null";
  if (is_literal || is_json_number(word)) {
    output_ += word;
    return true;
  }
  output_ += '"';
  append_escaped(output_, word);
  output_ += '"';
  return true;
}

}  // namespace quire::server
