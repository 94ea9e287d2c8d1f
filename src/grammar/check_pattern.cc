// Checks of regexes and EBNF: nesting depth, repeat counts, and anchors, ranges and escapes that
// XGrammar misreads or refuses without naming them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/ascii.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

Status refuse(std::string_view what, std::string_view why) {
  return invalid_argument(fmt::format("[grammar] {} {}", what, why));
}

// The number at the start of `text`; -1 if there is none, INT64_MAX if it is too large.
int64_t leading_number(std::string_view text, size_t& num_digits) {
  num_digits = 0;
  while (num_digits < text.size() && is_digit(text[num_digits])) ++num_digits;
  if (num_digits == 0) return -1;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + num_digits, number);
  return error == std::errc() ? number : INT64_MAX;
}

// `text` begins with the brace of {n}, {n,} or {n,m}. XGrammar refuses any other form itself.
Status check_repeat(std::string_view what, std::string_view text, const GrammarLimits& limits) {
  const std::string_view repeat = text.substr(0, text.find('}') + 1);
  text.remove_prefix(1);
  int64_t minimum = 0;
  for (int part = 0; part < 2; ++part) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n+-")));
    size_t num_digits = 0;
    const int64_t count = leading_number(text, num_digits);
    if (count > limits.max_repeat) {
      return refuse(
          what, fmt::format("repeats too often; got {{{}}}, expected at most {}",
                            text.substr(0, std::min<size_t>(num_digits, 20)), limits.max_repeat));
    }
    if (count >= 0 && count < minimum) {
      return refuse(what, fmt::format("has the repeat {}, whose minimum is above its maximum; "
                                      "write the smaller number first",
                                      clipped(repeat)));
    }
    minimum = count;
    text.remove_prefix(num_digits);
    const size_t next = text.find_first_not_of(" \t\r\n");
    if (next == std::string_view::npos || text[next] != ',') return {};
    text.remove_prefix(next + 1);
  }
  return {};
}

class Nesting {
 public:
  Nesting(std::string_view what, const GrammarLimits& limits) : what_(what), limits_(limits) {}

  Status open() {
    if (++depth_ <= limits_.max_nesting) return {};
    return refuse(what_, fmt::format("nests too deeply; got more than {} nested groups",
                                     limits_.max_nesting));
  }
  void close() { depth_ -= depth_ > 0 ? 1 : 0; }

 private:
  std::string_view what_;
  const GrammarLimits& limits_;
  size_t depth_ = 0;
};

// The length of a string that starts with '"', including its closing quote.
size_t string_length(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && text[length] != '"') length += text[length] == '\\' ? 2 : 1;
  return std::min(length + 1, text.size());
}

// The length of a comment that starts with '#', without the line end.
size_t comment_length(std::string_view text) {
  return std::min(text.size(), text.find_first_of("\r\n"));
}

bool is_name_char(char c) {
  return is_alphanumeric(c) || c == '_' || c == '-' || c == '.';
}

// The length of the name at the start of `text`, or 0. A name does not start with a digit.
size_t name_length(std::string_view text) {
  if (is_digit(text[0])) return 0;
  return static_cast<size_t>(std::ranges::find_if_not(text, is_name_char) - text.begin());
}

// Whether `text`, which follows a name, makes it a call: '(' after any spaces and comments.
bool is_call(std::string_view text) {
  while (!text.empty()) {
    if (text[0] == '#') {
      text.remove_prefix(comment_length(text));
    } else if (std::string_view(" \t\r\n").find(text[0]) != std::string_view::npos) {
      text.remove_prefix(1);
    } else {
      return text[0] == '(';
    }
  }
  return false;
}

// The length of a class that starts with '[', including its ']'; 1 if it is unclosed.
size_t class_length(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ']') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return 1;
}

Status check_escapes(std::string_view what, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') continue;
    QUIRE_RETURN_IF_ERROR(check_escape(what, text.substr(i)));
    ++i;
  }
  return {};
}

// Refuses escapes that XGrammar's regexes do not know. XGrammar would read an unknown letter as
// itself, and a character beyond ASCII as the character with its low byte.
Status check_regex_escape(std::string_view what, std::string_view at_backslash) {
  QUIRE_RETURN_IF_ERROR(check_escape(what, at_backslash));
  if (at_backslash.size() < 2) return refuse(what, "ends with a backslash");
  const char c = at_backslash[1];
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  constexpr std::string_view kKnown = "dDwWsSnrtfvaexuc";
  // \b is a word boundary, or a backspace in a class. XGrammar distinguishes them.
  if (static_cast<unsigned char>(c) >= 0x80 ||
      (is_letter && c != 'b' && kKnown.find(c) == std::string_view::npos)) {
    return refuse(what, fmt::format("has an escape that is not supported: \\{}",
                                    static_cast<unsigned char>(c) < 0x80 ? std::string(1, c)
                                                                         : "(not ASCII)"));
  }
  return {};
}

// The character that an escape of a class stands for; -1 for a set of characters such as \d.
int64_t escaped_character(std::string_view escape) {
  constexpr std::string_view kSets = "dDwWsS";
  constexpr std::string_view kLetters = "nrtfvaeb0";
  constexpr std::string_view kCharacters("\n\r\t\f\v\a\x1b\b\0", 9);
  const char kind = escape[1];
  if (kSets.find(kind) != std::string_view::npos) return -1;
  if (const size_t at = kLetters.find(kind); at != std::string_view::npos) return kCharacters[at];
  if (kind == 'c' && escape.size() > 2) return escape[2] % 32;
  if (kind != 'x' && kind != 'u') return static_cast<unsigned char>(kind);
  int64_t character = 0;
  for (const char c : escape.substr(2)) {
    if (hex_digit(c) >= 0) character = character * 16 + hex_digit(c);
  }
  return character;
}

// The length of the escape at the start of `text`, which check_regex_escape has passed.
size_t escape_length(std::string_view text) {
  if (text.starts_with("\\u{")) {
    const size_t end = text.find('}');
    return end == std::string_view::npos ? text.size() : end + 1;  // XGrammar refuses an unclosed {
  }
  const size_t length = text[1] == 'x' ? 4 : text[1] == 'u' ? 6 : text[1] == 'c' ? 3 : 2;
  return std::min(text.size(), length);
}

struct ClassItem {
  size_t length;
  int64_t character;  // -1: a set
};
ClassItem class_item(std::string_view text) {
  if (text[0] == '\\') {
    const size_t length = escape_length(text);
    return {.length = length, .character = escaped_character(text.substr(0, length))};
  }
  const Utf8Char decoded = decode_utf8(text);
  return {.length = static_cast<size_t>(decoded.num_bytes),
          .character = static_cast<int64_t>(decoded.code_point)};
}

// Checks the escapes and ranges of a regex's class, from its '[' to its ']'.
Status check_class(std::string_view what, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') continue;
    QUIRE_RETURN_IF_ERROR(check_regex_escape(what, text.substr(i)));
    ++i;
  }
  std::string_view rest = text.substr(0, text.size() - 1);
  rest.remove_prefix(rest.starts_with("[^") ? 2 : 1);
  while (!rest.empty()) {
    const ClassItem low = class_item(rest);
    const std::string_view after = rest.substr(low.length);
    if (low.character < 0 || after.size() < 2 || after[0] != '-') {
      rest = after;
      continue;
    }
    const ClassItem high = class_item(after.substr(1));
    const std::string_view range = rest.substr(0, low.length + 1 + high.length);
    if (high.character < 0) {
      return refuse(what,
                    fmt::format("has the range {}, which ends with a set of characters; write "
                                "\\- for a hyphen",
                                clipped(range)));
    }
    if (high.character < low.character) {
      return refuse(what, fmt::format("has the range {}, whose ends are in the wrong order; write "
                                      "the lower character first",
                                      clipped(range)));
    }
    rest.remove_prefix(range.size());
  }
  return {};
}

// Checks the anchor at `offset`. XGrammar ignores anchors elsewhere than at the ends.
Status check_anchor(std::string_view what, std::string_view pattern, size_t offset) {
  const char anchor = pattern[offset];
  const std::string_view before = pattern.substr(0, offset);
  const bool is_outermost =
      anchor == '^' ? before.empty() || before == "(?i)" : offset + 1 == pattern.size();
  if (is_outermost) return {};
  const auto num_before = std::ranges::count_if(
      before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return refuse(what, fmt::format("has {0} at character {1}, expected it only at the {2}; remove "
                                  "it, because the whole text must match in any case, or write "
                                  "\\{0} for the character",
                                  anchor, num_before + 1, anchor == '^' ? "start" : "end"));
}

// Functions that XGrammar adds to EBNF. Quire does not support them; some name tokens by id.
constexpr std::array<std::string_view, 6> kFunctions = {
    "TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring"};

Status check_name(std::string_view what, std::string_view name, std::string_view rest) {
  if (is_one_of(name, kFunctions) && is_call(rest)) {
    return refuse(what, fmt::format("uses {}(), which is not supported", name));
  }
  // A rule's attribute looks like a class, and its string may contain the ']' that ends a class.
  if (rest.starts_with('[') &&
      rest.substr(0, class_length(rest)).find("capture") != std::string_view::npos) {
    return refuse(what, "captures a rule's text, which is not supported");
  }
  return {};
}

}  // namespace

Status check_escape(std::string_view what, std::string_view at_backslash) {
  if (at_backslash.size() < 2) return {};
  const char kind = at_backslash[1];
  if (kind != 'x' && kind != 'u' && kind != 'U') return {};
  std::string_view digits = at_backslash.substr(2);
  const bool in_braces = kind == 'u' && digits.starts_with('{');
  if (in_braces) digits.remove_prefix(1);
  // XGrammar's \x takes all hexadecimal digits that follow; in other dialects it takes two.
  const size_t max_digits = kind == 'x' ? 2 : kind == 'U' ? 8 : in_braces ? 6 : 4;
  uint32_t code_point = 0;
  size_t n = 0;
  while (n < digits.size() && n < max_digits && hex_digit(digits[n]) >= 0) {
    code_point = code_point * 16 + static_cast<uint32_t>(hex_digit(digits[n++]));
  }
  // Without its digits, XGrammar's regexes would read the letter as itself: \x{41} as 41 times x.
  if (n == 0 || (kind != 'x' && !in_braces && n < max_digits)) {
    return refuse(what,
                  fmt::format("has a \\{} without its digits; write \\u and four of them, in a "
                              "regex also \\u{{…}}",
                              kind));
  }
  if (kind == 'x' && n < digits.size() && hex_digit(digits[n]) >= 0) {
    return refuse(what, "has a \\x with more than two digits after it; write \\u00XX");
  }
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
    return refuse(what,
                  fmt::format("has an escape for U+{:X}, which is not a character", code_point));
  }
  return {};
}

Status check_regex(std::string_view what, std::string_view pattern, const GrammarLimits& limits) {
  if (pattern.size() > limits.max_regex_bytes) {
    return refuse(what, fmt::format("is too long; got {} bytes, expected at most {}",
                                    pattern.size(), limits.max_regex_bytes));
  }
  Nesting nesting(what, limits);
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest[0] == '\\') {
      QUIRE_RETURN_IF_ERROR(check_regex_escape(what, rest));
      ++i;
    } else if (rest[0] == '[') {
      const size_t length = class_length(rest);
      if (length == 1) return refuse(what, "has an unclosed [");
      QUIRE_RETURN_IF_ERROR(check_class(what, rest.substr(0, length)));
      i += length - 1;
    } else if (rest[0] == '^' || rest[0] == '$') {
      QUIRE_RETURN_IF_ERROR(check_anchor(what, pattern, i));
    } else if (rest[0] == '(') {
      QUIRE_RETURN_IF_ERROR(nesting.open());
    } else if (rest[0] == ')') {
      nesting.close();
    } else if (rest[0] == '{') {
      QUIRE_RETURN_IF_ERROR(check_repeat(what, rest, limits));
    }
  }
  return {};
}

Status check_ebnf(std::string_view text, const GrammarLimits& limits) {
  constexpr std::string_view kWhat = "the grammar";
  Nesting nesting(kWhat, limits);
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (const size_t end = name_length(rest); end > 0) {
      QUIRE_RETURN_IF_ERROR(check_name(kWhat, rest.substr(0, end), rest.substr(end)));
      i += end - 1;
    } else if (rest[0] == '"') {
      const size_t length = string_length(rest);
      QUIRE_RETURN_IF_ERROR(check_escapes(kWhat, rest.substr(0, length)));
      i += length - 1;
    } else if (rest[0] == '[') {
      const size_t length = class_length(rest);
      if (length == 1) return refuse(kWhat, "has an unclosed [");
      QUIRE_RETURN_IF_ERROR(check_escapes(kWhat, rest.substr(0, length)));
      i += length - 1;
    } else if (rest[0] == '#') {
      i += comment_length(rest);
    } else if (rest[0] == '(') {
      QUIRE_RETURN_IF_ERROR(nesting.open());
    } else if (rest[0] == ')') {
      nesting.close();
    } else if (rest[0] == '{') {
      QUIRE_RETURN_IF_ERROR(check_repeat(kWhat, rest, limits));
    }
  }
  return {};
}

}  // namespace quire::grammar
