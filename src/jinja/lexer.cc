#include "jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"
#include "jinja/budget.h"
#include "jinja/string_literal.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

std::string normalize(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize(source)) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) lex_data();
    add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(pos_); }
  char at(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
  void add(TokenType type, std::string_view text) {
    constexpr size_t kMaxTokens = 200'000;
    if (tokens_.size() >= kMaxTokens) {
      fail_at(line_,
              fmt::format("the template is too long; expected at most {} tokens", kMaxTokens));
    }
    tokens_.push_back({type, std::string(text), {}, line_});
  }
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    if (to > pos_) line_starting_ = source_[to - 1] == '\n';
    pos_ = to;
  }
  size_t skip_space(size_t from) const {
    const std::string_view text = std::string_view(source_).substr(from);
    return from + text.size() - strip(text, std::nullopt, true, false).size();
  }
  // The position after the tag's end mark (`-%}`, `+%}` or `%}`) at `from`; 0 if there is none.
  size_t tag_end(size_t from, std::string_view mark, bool is_variable) const {
    const std::string_view text = std::string_view(source_).substr(from);
    if (text.starts_with('-') && text.substr(1).starts_with(mark)) return skip_space(from + 3);
    if (!is_variable && text.starts_with('+') && text.substr(1).starts_with(mark)) return from + 3;
    if (!text.starts_with(mark)) return 0;
    return from + 2 + (!is_variable && at(from + 2) == '\n');
  }

  void lex_data();
  void add_data(size_t end, char sign, bool is_variable);
  std::optional<size_t> raw_begin(size_t from) const;
  void lex_raw();
  void lex_comment();
  void lex_tag(bool is_variable);
  void lex_token();
  bool lex_number();
  void lex_string();
  void lex_operator();

  std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the text read last ended a line
  std::string closers_;        // the closing brackets expected in this tag
  std::vector<Token> tokens_;
};

// Adds the text before a tag, stripped as the tag's sign says.
void Lexer::add_data(size_t end, char sign, bool is_variable) {
  std::string_view text = std::string_view(source_).substr(pos_, end - pos_);
  if (sign == '-') {
    text = strip(text, std::nullopt, false, true);
  } else if (sign != '+' && !is_variable) {
    const size_t newline = text.rfind('\n');
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    if ((line_start > 0 || line_starting_) &&
        strip(text.substr(line_start), std::nullopt, true, false).empty()) {
      text = text.substr(0, line_start);
    }
  }
  if (!text.empty()) add(TokenType::kData, text);
}

void Lexer::lex_data() {
  size_t open = pos_;
  do {
    open = source_.find('{', open);
    if (open == std::string::npos) {
      add(TokenType::kData, rest());
      return advance(source_.size());
    }
    const char next = at(open + 1);
    if (next == '{' || next == '%' || next == '#') break;
    ++open;
  } while (true);
  const char mark = source_[open + 1];
  const char sign = at(open + 2);
  const bool has_sign = sign == '-' || sign == '+';
  add_data(open, sign, mark == '{');
  if (mark == '%') {
    if (const auto body = raw_begin(open + 2)) {
      advance(*body);
      return lex_raw();
    }
  }
  advance(open + 2 + has_sign);
  mark == '#' ? lex_comment() : lex_tag(mark == '{');
}

std::optional<size_t> Lexer::raw_begin(size_t from) const {
  if (at(from) == '-' || at(from) == '+') ++from;
  from = skip_space(from);
  if (!std::string_view(source_).substr(from).starts_with("raw")) return std::nullopt;
  from = skip_space(from + 3);
  const std::string_view text = std::string_view(source_).substr(from);
  if (text.starts_with("-%}")) return skip_space(from + 3);
  if (text.starts_with("%}")) return from + 2;
  return std::nullopt;
}

void Lexer::lex_raw() {
  if (pos_ == source_.size()) return;
  for (size_t open = source_.find("{%", pos_); open != std::string::npos;
       open = source_.find("{%", open + 2)) {
    size_t from = open + 2;
    if (at(from) == '-' || at(from) == '+') ++from;
    from = skip_space(from);
    if (!std::string_view(source_).substr(from).starts_with("endraw")) continue;
    const size_t end = tag_end(skip_space(from + 6), "%}", false);
    if (end == 0) continue;
    add_data(open, at(open + 2), false);
    return advance(end);
  }
  fail_at(line_, "Missing end of raw directive");
}

void Lexer::lex_comment() {
  if (pos_ == source_.size()) return;
  size_t end = source_.find("#}", pos_);
  if (end == std::string::npos) fail_at(line_, "Missing end of comment tag");
  const char sign = end > pos_ ? source_[end - 1] : ' ';
  if (sign == '-' || sign == '+') --end;
  advance(tag_end(end, "#}", false));
}

void Lexer::lex_tag(bool is_variable) {
  add(is_variable ? TokenType::kVariableBegin : TokenType::kBlockBegin, "");
  const std::string_view mark = is_variable ? "}}" : "%}";
  closers_.clear();
  while (pos_ < source_.size()) {
    const size_t end = closers_.empty() ? tag_end(pos_, mark, is_variable) : 0;
    if (end > 0) {
      add(is_variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, "");
      return advance(end);
    }
    const size_t token = skip_space(pos_);
    if (token > pos_) {
      advance(token);
    } else {
      lex_token();
    }
  }
}

void Lexer::lex_token() {
  const char c = source_[pos_];
  if (c >= '0' && c <= '9' && lex_number()) return;
  if (c == '"' || c == '\'') return lex_string();
  size_t end = pos_;
  while (end < source_.size()) {
    const Utf8Char next = decode_utf8(std::string_view(source_).substr(end));
    if (!is_word(next.code_point)) break;
    end += static_cast<size_t>(next.num_bytes);
  }
  if (end == pos_) return lex_operator();
  const std::string_view name = rest().substr(0, end - pos_);
  if (!*classify("isidentifier", name)) fail_at(line_, "Invalid character in identifier");
  add(TokenType::kName, name);
  advance(end);
}

bool Lexer::lex_number() {
  const bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';
  const NumberLiteral literal = read_number(rest(), !after_dot);
  if (literal.num_bytes == 0) return false;
  if (!literal.value) {
    fail_at(line_, fmt::format("a number is beyond 64 bits; got {}",
                               rest().substr(0, std::min<size_t>(literal.num_bytes, 40))));
  }
  add(TokenType::kNumber, rest().substr(0, literal.num_bytes));
  tokens_.back().number = *literal.value;
  advance(pos_ + literal.num_bytes);
  return true;
}

void Lexer::lex_string() {
  const char quote = source_[pos_];
  size_t end = pos_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) {
    fail_at(line_, fmt::format("unexpected char {} at {}", quote, pos_));
  }
  add(TokenType::kString, "");
  const std::optional<std::string> text =
      unescape(std::string_view(source_).substr(pos_ + 1, end - pos_ - 1));
  if (!text) fail_at(line_, "a string has an escape that is not a character");
  tokens_.back().text = *text;
  advance(end + 1);
}

void Lexer::lex_operator() {
  constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                             "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                             ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
  for (const std::string_view op : kOperators) {
    if (!rest().starts_with(op)) continue;
    const size_t open = std::string_view("([{").find(op);
    if (open != std::string_view::npos) {
      closers_ += ")]}"[open];
    } else if (std::string_view(")]}").find(op) != std::string_view::npos) {
      if (closers_.empty()) fail_at(line_, fmt::format("unexpected '{}'", op));
      if (closers_.back() != op[0]) {
        fail_at(line_, fmt::format("unexpected '{}', expected '{}'", op, closers_.back()));
      }
      closers_.pop_back();
    }
    add(TokenType::kOperator, op);
    return advance(pos_ + op.size());
  }
  const Utf8Char c = decode_utf8(rest());
  fail_at(line_, fmt::format("unexpected char '{}' at {}",
                             rest().substr(0, static_cast<size_t>(c.num_bytes)), pos_));
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace quire::jinja
