#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "jinja/python_text.h"
#include "jinja/syntax.h"

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

  // Adds the text before a tag, stripped according to the tag's sign.
  void add_data(size_t end, char sign, bool is_variable) {
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

  void lex_data() {
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

  std::optional<size_t> raw_begin(size_t from) const {
    if (at(from) == '-' || at(from) == '+') ++from;
    from = skip_space(from);
    if (!std::string_view(source_).substr(from).starts_with("raw")) return std::nullopt;
    from = skip_space(from + 3);
    const std::string_view text = std::string_view(source_).substr(from);
    if (text.starts_with("-%}")) return skip_space(from + 3);
    if (text.starts_with("%}")) return from + 2;
    return std::nullopt;
  }

  void lex_raw() {
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

  void lex_comment() {
    if (pos_ == source_.size()) return;
    size_t end = source_.find("#}", pos_);
    if (end == std::string::npos) fail_at(line_, "Missing end of comment tag");
    const char sign = end > pos_ ? source_[end - 1] : ' ';
    if (sign == '-' || sign == '+') --end;
    advance(tag_end(end, "#}", false));
  }

  void lex_tag(bool is_variable) {
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

  void lex_token() {
    const char c = source_[pos_];
    if (c >= '0' && c <= '9') return lex_number();
    if (c == '"' || c == '\'') return lex_string();
    size_t num_bytes = 0;
    for (const auto& [code_point, bytes] : Chars(rest())) {
      if (!is_word(code_point)) break;
      num_bytes += bytes.size();
    }
    if (num_bytes == 0) return lex_operator();
    const std::string_view name = rest().substr(0, num_bytes);
    if (!is_identifier(name)) fail_at(line_, "Invalid character in identifier");
    add(TokenType::kName, name);
    advance(pos_ + num_bytes);
  }

  // Reads 12, 1_000, 1.5 or 2e-3. After a dot there are only integers: in x.1.2, they are indices.
  void lex_number() {
    const std::string_view text = rest();
    const size_t whole = count_digits(text);
    size_t end = whole;
    if (pos_ == 0 || source_[pos_ - 1] != '.') {
      if (at(pos_ + end) == '.' && count_digits(text.substr(end + 1)) > 0) {
        end += 1 + count_digits(text.substr(end + 1));
      }
      end += count_exponent(text.substr(end));
    }
    const std::string_view literal = text.substr(0, end);
    add(TokenType::kNumber, literal);
    if (end > whole) {
      tokens_.back().number = Value::real(digits_to_float(literal));
      return advance(pos_ + end);
    }
    if (text[0] == '0' &&
        (std::string_view("xXoObB").find(at(pos_ + 1)) != std::string_view::npos ||
         literal.find_first_not_of("0_") != std::string_view::npos)) {
      fail_at(line_, fmt::format("numbers must be decimal without a leading 0; got '{}'",
                                 shortened(text.substr(0, text.find_first_of(" \n}")))));
    }
    const std::optional<int64_t> number = digits_to_int(literal, false, 10);
    if (!number) {
      fail_at(line_, fmt::format("a number is beyond 64 bits; got {}", shortened(literal)));
    }
    tokens_.back().number = Value::integer(*number);
    advance(pos_ + end);
  }

  void lex_string() {
    const char quote = source_[pos_];
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) {
      fail_at(line_, fmt::format("unexpected char {} at {}", quote, pos_));
    }
    const std::string text = unescape(rest().substr(1, end - pos_ - 1));
    add(TokenType::kString, text);
    advance(end + 1);
  }

  // Replaces the escapes of a string literal. As in Python, a backslash before another ASCII
  // character stays.
  std::string unescape(std::string_view text) const {
    constexpr std::string_view kFrom = "\\'\"abfnrtv";
    constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    while (!text.empty()) {
      const char c = text[0];
      text.remove_prefix(1);
      if (c != '\\' || text.empty()) {
        out += c;
        continue;
      }
      const char e = text[0];
      text.remove_prefix(1);
      if (const size_t simple = kFrom.find(e); simple != std::string_view::npos) {
        out += kTo[simple];
      } else if (e == 'x' || e == 'u' || e == 'U') {
        const size_t num_digits = e == 'x' ? 2 : e == 'u' ? 4 : 8;
        const std::string_view digits = text.substr(0, num_digits);
        const std::optional<int64_t> code = digits_to_int(digits, false, 16);
        const bool is_number = digits.size() == num_digits &&
                               digits.find_first_not_of("0123456789abcdefABCDEF") == digits.npos;
        const bool is_char = code && *code <= 0x10ffff && (*code < 0xd800 || *code >= 0xe000);
        if (!is_number || !is_char) {
          fail_at(line_, fmt::format("the escape '\\{}{}' is not a character", e, digits));
        }
        append_utf8(static_cast<char32_t>(*code), out);
        text.remove_prefix(num_digits);
      } else if ((e >= '0' && e <= '7') || e == 'N' || e < 0) {
        fail_at(line_, fmt::format("the escape '\\{}' is not supported; write the character itself "
                                   "or \\uXXXX",
                                   e < 0 ? "…" : std::string(1, e)));
      } else if (e != '\n') {
        out += {'\\', e};
      }
    }
    return out;
  }

  void lex_operator() {
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

  std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the text read last ended a line
  std::string closers_;        // the closing brackets expected in this tag
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

// ---- TokenReader

namespace {

constexpr const char* kTokenNames[] = {"template data / text",
                                       "begin of print statement",
                                       "end of print statement",
                                       "begin of statement block",
                                       "end of statement block",
                                       "name",
                                       "string",
                                       "number",
                                       "operator",
                                       "end of template"};

}  // namespace

bool TokenReader::skip_op(std::string_view op) {
  const bool is_here = current().is_op(op);
  if (is_here) next();
  return is_here;
}
bool TokenReader::skip_name(std::string_view name) {
  const bool is_here = current().is_name(name);
  if (is_here) next();
  return is_here;
}
void TokenReader::expect_op(std::string_view op) {
  if (!skip_op(op)) fail_here(fmt::format("expected token '{}'", op));
}
std::string TokenReader::expect_name() {
  if (current().type != TokenType::kName) fail_here("expected token 'name'");
  return next().text;
}
void TokenReader::expect(TokenType type) {
  if (current().type != type) {
    fail_here(fmt::format("expected token '{}'", kTokenNames[static_cast<size_t>(type)]));
  }
  next();
}
void TokenReader::fail_here(std::string_view message) const {
  const bool is_shown =
      current().type == TokenType::kName || current().type == TokenType::kOperator;
  fail_at(current().line, fmt::format("{}, got '{}'", message,
                                      is_shown ? shortened(current().text)
                                               : kTokenNames[static_cast<size_t>(current().type)]));
}

}  // namespace quire::jinja
