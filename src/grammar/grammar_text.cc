// Reads grammars in XGrammar's EBNF and in llama.cpp's GBNF, and writes them as EBNF that XGrammar
// always accepts: rules have new names, and characters other than letters and digits are escaped.
//
// Both dialects have rules `name ::= a b | c`, "text", [classes], groups, the repeats * + ? {m,n}
// and comments (#). They differ in the characters of names, in the escapes, and in GBNF's `.`, its
// empty alternatives and its tokens (<…>).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kAnyCharacter = "[\\u0000-\\U0010ffff]";
constexpr std::string_view kElement =
    "an element: \"text\", [a class], (a group) or the name of a rule";

// Functions that XGrammar adds to EBNF. Quire does not support them; some name tokens by id.
constexpr std::array<std::string_view, 6> kFunctions = {
    "TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring"};

bool is_character(uint32_t code_point) {
  return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
}

void append_character(char32_t character, std::string& ebnf) {
  if (character < 0x80 && is_alphanumeric(static_cast<char>(character))) {
    ebnf += static_cast<char>(character);
  } else if (character < 0x10000) {
    ebnf += fmt::format("\\u{:04x}", static_cast<uint32_t>(character));
  } else {
    ebnf += fmt::format("\\U{:08x}", static_cast<uint32_t>(character));
  }
}

class GrammarReader {
 public:
  GrammarReader(std::string_view text, GrammarDialect dialect, const GrammarLimits& limits)
      : text_(text), is_gbnf_(dialect == GrammarDialect::kGbnf), limits_(limits) {}

  Result<std::string> read() {
    skip_space();
    while (at_ < text_.size()) QUIRE_RETURN_IF_ERROR(read_rule());
    for (const std::string_view name : names_) {
      const Rule& rule = rules_.at(name);
      if (rule.is_defined) continue;
      return fail(rule.first_use,
                  fmt::format("got the name '{}', expected the name of a rule", clipped(name)));
    }
    if (!rules_.contains("root")) return fail(text_.size(), "got no rule named root, expected one");
    return std::move(out_);
  }

 private:
  struct Rule {
    size_t idx = 0;
    size_t first_use = 0;
    bool is_defined = false;
  };

  // Returns the error `[grammar] the grammar, line 2, column 5: …`.
  Status fail(size_t at, std::string_view what) const {
    const std::string_view before = text_.substr(0, at);
    const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
    const auto column = std::ranges::count_if(
        line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    return invalid_argument(fmt::format("[grammar] the grammar, line {}, column {}: {}",
                                        1 + std::ranges::count(before, '\n'), column + 1, what));
  }
  // The error for a character where `expected` should be.
  Status unexpected(std::string_view expected) const {
    if (at_end()) return fail(at_, fmt::format("got the end, expected {}", expected));
    const auto num_bytes = static_cast<size_t>(decode_utf8(rest()).num_bytes);
    const std::string character = one_line(rest().substr(0, num_bytes));
    return fail(at_, fmt::format("got '{}', expected {}", character, expected));
  }

  std::string_view rest() const { return text_.substr(at_); }
  bool at_end() const { return at_ == text_.size(); }
  bool is_at(std::string_view token) const { return rest().starts_with(token); }

  // The offset after the spaces, line ends and comments at `from`.
  size_t after_space(size_t from) const {
    while (from < text_.size()) {
      if (text_[from] == '#') {
        from = std::min(text_.size(), text_.find_first_of("\r\n", from));
      } else if (kBlanks.find(text_[from]) != std::string_view::npos) {
        ++from;
      } else {
        break;
      }
    }
    return from;
  }
  void skip_space() { at_ = after_space(at_); }

  bool is_name_character(char c) const {
    return is_alphanumeric(c) || c == '-' || (!is_gbnf_ && (c == '_' || c == '.'));
  }
  // Returns the name at `at_`; empty: no name begins there. In EBNF, a name does not start with a
  // digit.
  std::string_view name_here() const {
    const std::string_view from = rest();
    if (from.empty() || (!is_gbnf_ && is_digit(from[0]))) return {};
    const auto end =
        std::ranges::find_if_not(from, [this](char c) { return is_name_character(c); });
    return from.substr(0, static_cast<size_t>(end - from.begin()));
  }
  bool is_rule_start() const {
    const std::string_view name = name_here();
    return !name.empty() && text_.substr(after_space(at_ + name.size())).starts_with("::=");
  }

  // Returns the rule of a name. In the output, its name is made of its index, except for `root`.
  Rule& rule_of(std::string_view name) {
    const auto [found, is_new] = rules_.try_emplace(name);
    if (is_new) {
      found->second.idx = names_.size();
      found->second.first_use = at_;
      names_.push_back(name);
    }
    return found->second;
  }
  void append_name(std::string_view name, const Rule& rule) {
    out_ += name == "root" ? "root" : fmt::format("r{}", rule.idx);
  }

  Status read_rule() {
    const std::string_view name = name_here();
    if (name.empty()) return unexpected("the name of a rule");
    if (text_.substr(at_ + name.size()).starts_with('[')) {
      at_ += name.size();
      return unexpected("::= (attributes of rules are not supported)");
    }
    Rule& rule = rule_of(name);
    if (rule.is_defined) {
      return fail(at_, fmt::format("the rule '{}' is defined twice; expected one definition",
                                   clipped(name)));
    }
    rule.is_defined = true;
    append_name(name, rule);
    at_ = after_space(at_ + name.size());
    if (!is_at("::=")) return unexpected("::=");
    at_ += 3;
    skip_space();
    out_ += " ::= ";
    QUIRE_RETURN_IF_ERROR(read_alternatives());
    if (is_lookahead()) QUIRE_RETURN_IF_ERROR(skip_lookahead());
    out_ += '\n';
    if (at_end()) return {};
    if (!is_rule_start()) return unexpected("an element, | or a rule");
    // A rule must begin on a new line: elements before its name on its line would belong to another
    // rule.
    const std::string_view before = text_.substr(0, at_);
    const std::string_view line = before.substr(before.find_last_of("\r\n") + 1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) return {};
    return fail(at_, fmt::format("got the rule '{}' in the line of another, expected a new line",
                                 clipped(name_here())));
  }

  bool is_lookahead() const { return !is_gbnf_ && is_at("(="); }
  // XGrammar's lookahead (= …) at the end of a rule describes the text after it. It only makes
  // masks cheaper.
  Status skip_lookahead() {
    const size_t size = out_.size();
    at_ += 2;
    skip_space();
    QUIRE_RETURN_IF_ERROR(read_alternatives());
    if (!is_at(")")) return unexpected(")");
    ++at_;
    skip_space();
    out_.resize(size);
    return {};
  }

  Status read_alternatives() {
    QUIRE_RETURN_IF_ERROR(read_sequence());
    while (is_at("|")) {
      ++at_;
      skip_space();
      out_ += " | ";
      QUIRE_RETURN_IF_ERROR(read_sequence());
    }
    return {};
  }

  Status read_sequence() {
    size_t num_elements = 0;
    for (; !at_end() && !is_at("|") && !is_at(")") && !is_lookahead() && !is_rule_start();
         ++num_elements) {
      if (num_elements > 0) out_ += ' ';
      const size_t begin = out_.size();
      QUIRE_RETURN_IF_ERROR(read_element());
      skip_space();
      QUIRE_RETURN_IF_ERROR(read_repeats(begin));
    }
    if (num_elements > 0) return {};
    if (!is_gbnf_) return unexpected(kElement);
    out_ += "\"\"";
    return {};
  }

  Status read_element() {
    if (is_at("\"")) return read_literal();
    if (is_at("[")) return read_class();
    if (is_at("(")) return read_group();
    if (is_gbnf_ && is_at(".")) {
      ++at_;
      out_ += kAnyCharacter;
      return {};
    }
    if (is_gbnf_ && (is_at("<") || is_at("!"))) {
      return fail(at_, "got a token (<…>), which is not supported; expected \"text\"");
    }
    const std::string_view name = name_here();
    if (name.empty()) return unexpected(kElement);
    if (!is_gbnf_ && is_one_of(name, kFunctions) &&
        text_.substr(after_space(at_ + name.size())).starts_with('(')) {
      return fail(at_,
                  fmt::format("got {}(), which is not supported; expected {}", name, kElement));
    }
    append_name(name, rule_of(name));
    at_ += name.size();
    return {};
  }

  Status read_group() {
    const size_t opened = at_;
    if (++depth_ > limits_.max_nesting) return nests_too_deeply();
    ++at_;
    skip_space();
    out_ += '(';
    if (is_at(")")) {
      out_ += "\"\"";
    } else {
      QUIRE_RETURN_IF_ERROR(read_alternatives());
    }
    if (!is_at(")")) {
      return at_end() ? fail(opened, "got a ( that is not closed, expected its )")
                      : unexpected(")");
    }
    ++at_;
    out_ += ')';
    --depth_;
    return {};
  }
  Status nests_too_deeply() const {
    return fail(
        at_, fmt::format("nests too deeply; got more than {} nested groups", limits_.max_nesting));
  }

  // Reads the repeats of the element that starts at `begin` of the output. A second repeat applies
  // to the element together with its first repeat, which become a group.
  Status read_repeats(size_t begin) {
    for (size_t num_repeats = 0; !at_end(); ++num_repeats) {
      const char mark = text_[at_];
      if (mark != '*' && mark != '+' && mark != '?' && mark != '{') return {};
      if (num_repeats > 0) {
        if (depth_ + num_repeats > limits_.max_nesting) return nests_too_deeply();
        out_.insert(begin, "(");
        out_ += ')';
      }
      if (mark == '{') {
        QUIRE_RETURN_IF_ERROR(read_range(begin));
      } else {
        out_ += mark;
        ++at_;
      }
      skip_space();
    }
    return {};
  }

  // Reads {m}, {m,} or {m,n}. XGrammar's own printer writes {m,-1} for {m,}.
  Status read_range(size_t begin) {
    const size_t opened = at_++;
    int64_t least = 0;
    QUIRE_RETURN_IF_ERROR(read_count(least));
    int64_t most = least;
    if (is_at(",")) {
      ++at_;
      skip_space();
      most = -1;
      if (!is_gbnf_ && is_at("-1")) {
        at_ += 2;
        skip_space();
      } else if (!is_at("}")) {
        QUIRE_RETURN_IF_ERROR(read_count(most));
      }
    }
    if (!is_at("}")) return unexpected("} or , in the repeat");
    ++at_;
    if (most >= 0 && most < least) {
      return fail(opened,
                  fmt::format("got the repeat {}, whose minimum is above its maximum; write "
                              "the smaller number first",
                              clipped(text_.substr(opened, at_ - opened))));
    }
    if (most == 0) {
      out_.resize(begin);
      out_ += "\"\"";
    } else {
      out_ += most < 0 ? fmt::format("{{{},}}", least) : fmt::format("{{{},{}}}", least, most);
    }
    return {};
  }

  Status read_count(int64_t& out) {
    skip_space();
    const size_t begin = at_;
    while (!at_end() && is_digit(text_[at_])) ++at_;
    if (at_ == begin) return unexpected("a number in the repeat");
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error != std::errc() || out > limits_.max_repeat) {
      return fail(begin, fmt::format("repeats too often; got {}, expected at most {}",
                                     digits.substr(0, 20), limits_.max_repeat));
    }
    skip_space();
    return {};
  }

  Status read_literal() {
    const size_t opened = at_++;
    out_ += '"';
    while (!is_at("\"")) {
      if (at_end()) return fail(opened, "got a \" that is not closed, expected its \"");
      char32_t character = 0;
      QUIRE_RETURN_IF_ERROR(read_character(/*in_class=*/false, character));
      append_character(character, out_);
    }
    ++at_;
    out_ += '"';
    return {};
  }

  Status read_class() {
    const size_t opened = at_++;
    out_ += '[';
    if (is_at("^")) {
      ++at_;
      out_ += '^';
    }
    const size_t first = at_;
    while (!is_at("]")) {
      if (at_end()) return fail(opened, "got an unclosed [, expected its ]");
      const size_t begin = at_;
      char32_t low = 0;
      QUIRE_RETURN_IF_ERROR(read_character(/*in_class=*/true, low));
      append_character(low, out_);
      if (!is_at("-") || at_ + 1 == text_.size() || text_[at_ + 1] == ']') continue;
      ++at_;
      char32_t high = 0;
      QUIRE_RETURN_IF_ERROR(read_character(/*in_class=*/true, high));
      if (high < low) {
        return fail(begin, fmt::format("got the range {}, whose ends are in the wrong order; write "
                                       "the lower character first",
                                       clipped(text_.substr(begin, at_ - begin))));
      }
      out_ += '-';
      append_character(high, out_);
    }
    if (at_ == first) {
      return fail(opened, "got an empty class, expected the characters that it allows");
    }
    ++at_;
    out_ += ']';
    return {};
  }

  Status read_character(bool in_class, char32_t& out) {
    if (text_[at_] != '\\') {
      const Utf8Char decoded = decode_utf8(rest());
      out = decoded.code_point;
      at_ += static_cast<size_t>(decoded.num_bytes);
      return {};
    }
    const std::string_view escape = rest();
    const char kind = escape.size() > 1 ? escape[1] : '\0';
    if (kind == 'x') return read_hex(is_gbnf_ ? 2 : 1, 2, out);
    if (kind == 'u') return read_hex(4, 4, out);
    if (kind == 'U') return read_hex(8, 8, out);
    constexpr std::string_view kLetters = "tnrabfve0";
    constexpr std::string_view kCharacters("\t\n\r\a\b\f\v\x1b\0", 9);
    const size_t letter = kLetters.substr(0, is_gbnf_ ? 3 : kLetters.size()).find(kind);
    const std::string_view itself = is_gbnf_   ? "\\\"[]-"
                                    : in_class ? "\\\"'?/^$.*+()[]{}|-"
                                               : "\\\"'?/";
    if (letter != std::string_view::npos) {
      out = static_cast<unsigned char>(kCharacters[letter]);
    } else if (kind != '\0' && itself.find(kind) != std::string_view::npos) {
      out = static_cast<unsigned char>(kind);
    } else {
      const auto length = escape.size() > 1
                              ? 1 + static_cast<size_t>(decode_utf8(escape.substr(1)).num_bytes)
                              : size_t{1};
      return fail(at_, fmt::format("got the escape {}, which is not supported; expected the "
                                   "character itself or \\uXXXX",
                                   escape.substr(0, length)));
    }
    at_ += 2;
    return {};
  }

  // Reads the digits after \x, \u or \U.
  Status read_hex(size_t least, size_t most, char32_t& out) {
    const std::string_view digits = text_.substr(at_ + 2);
    uint32_t code_point = 0;
    size_t n = 0;
    while (n < std::min(most, digits.size()) && hex_digit(digits[n]) >= 0) {
      code_point = code_point * 16 + static_cast<uint32_t>(hex_digit(digits[n++]));
    }
    if (n < least) {
      return fail(at_, fmt::format("got \\{} without its digits, expected {} of them",
                                   text_[at_ + 1], most));
    }
    // In XGrammar's EBNF, \x takes all hexadecimal digits that follow.
    if (!is_gbnf_ && most == 2 && n < digits.size() && hex_digit(digits[n]) >= 0) {
      return fail(at_, "got a \\x with more than two digits after it; write \\u00XX");
    }
    if (!is_character(code_point)) {
      return fail(at_, fmt::format("got an escape for U+{:X}, which is not a character; expected "
                                   "one",
                                   code_point));
    }
    out = code_point;
    at_ += 2 + n;
    return {};
  }

  const std::string_view text_;
  const bool is_gbnf_;
  const GrammarLimits& limits_;
  size_t at_ = 0;
  size_t depth_ = 0;
  std::unordered_map<std::string_view, Rule> rules_;
  std::vector<std::string_view> names_;  // in the order of their first use
  std::string out_;
};

}  // namespace

Result<std::string> plain_grammar(std::string_view text, GrammarDialect dialect,
                                  const GrammarLimits& limits) {
  return GrammarReader(text, dialect, limits).read();
}

}  // namespace quire::grammar
