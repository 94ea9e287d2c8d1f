// Reads regexes in the syntax of ECMAScript and writes them in the part of the syntax that XGrammar
// reads correctly: without flags, names of groups and lazy repeats.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

constexpr int64_t kUnbounded = RegexText::kUnbounded;
constexpr std::string_view kNoRepeat =
    " that is not a repeat such as {2,5}; write \\{ for the character";

// Sums and products saturate, because nested repeats multiply.
int64_t sum(int64_t a, int64_t b) {
  return a > kUnbounded - b ? kUnbounded : a + b;
}
int64_t product(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > kUnbounded / b ? kUnbounded : a * b;
}

bool is_letter(char c) {
  return is_alphanumeric(c) && !is_digit(c);
}

// The number of characters in UTF-8 text.
int64_t num_characters(std::string_view text) {
  return std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// The character that an escape stands for; -1 for a set of characters such as \d.
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

// A set of characters as ranges, both ends inclusive.
using CharRange = std::pair<int64_t, int64_t>;
using CharSet = std::vector<CharRange>;

constexpr int64_t kMaxCharacter = 0x10FFFF;

CharSet complement_of(CharSet set) {
  std::ranges::sort(set);
  CharSet complement;
  int64_t next = 0;
  for (const auto& [low, high] : set) {
    if (low > next) complement.emplace_back(next, low - 1);
    next = std::max(next, high + 1);
  }
  if (next <= kMaxCharacter) complement.emplace_back(next, kMaxCharacter);
  return complement;
}

CharSet intersection_of(const CharSet& set, const CharSet& other) {
  CharSet both;
  for (const auto& [low, high] : set) {
    for (const auto& [other_low, other_high] : other) {
      const CharRange range(std::max(low, other_low), std::min(high, other_high));
      if (range.first <= range.second) both.push_back(range);
    }
  }
  return both;
}

bool contains(const CharSet& set, int64_t character) {
  return std::ranges::any_of(set, [&](const CharRange& range) {
    return range.first <= character && character <= range.second;
  });
}

// The characters of ECMAScript's \d, \w, \s and their complements.
CharSet escaped_set(char kind) {
  const char lower = static_cast<char>(kind | 0x20);
  CharSet set = {{'0', '9'}};
  if (lower == 'w') set = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  if (lower == 's') {
    set = {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
           {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
           {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  }
  return kind == lower ? set : complement_of(std::move(set));
}

// ECMAScript's `.`: all characters but line ends.
CharSet any_character() {
  return complement_of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
}

// The characters that stand for themselves in a JSON string. Surrogates are not characters.
const CharSet kUnescaped = {
    {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0xD7FF}, {0xE000, kMaxCharacter}};

std::string class_of(const CharSet& set) {
  const auto text_of = [](int64_t character) {
    const bool is_plain = character < 0x80 && is_alphanumeric(static_cast<char>(character));
    return is_plain ? std::string(1, static_cast<char>(character))
                    : fmt::format("\\u{{{:X}}}", character);
  };
  std::string text = "[";
  for (const auto& [low, high] : set) {
    text += text_of(low);
    if (high > low) text += "-" + text_of(high);
  }
  return text + "]";
}

// Returns a regex of the JSON spellings of the set's characters: themselves, \" \\ \b \t \n \f \r,
// and \u00XX for the other control characters.
std::string json_spellings(const CharSet& set) {
  std::vector<std::string> spellings;
  const CharSet unescaped = intersection_of(set, kUnescaped);
  if (!unescaped.empty()) spellings.push_back(class_of(unescaped));
  constexpr std::string_view kEscaped = "\"\\\b\t\n\f\r";
  constexpr std::array<std::string_view, 7> kLetters = {"\"", "\\\\", "b", "t", "n", "f", "r"};
  std::string letters;
  for (size_t i = 0; i < kEscaped.size(); ++i) {
    if (contains(set, kEscaped[i])) letters += kLetters[i];
  }
  if (!letters.empty()) spellings.push_back(fmt::format("\\\\[{}]", letters));
  for (const int high : {0, 1}) {
    std::string digits;
    for (int low = 0; low < 16; ++low) {
      const int character = high * 16 + low;
      if (!contains(set, character) ||
          kEscaped.find(static_cast<char>(character)) != std::string_view::npos) {
        continue;
      }
      digits += fmt::format("{:x}", low);
      if (low > 9) digits += fmt::format("{:X}", low);
    }
    if (!digits.empty()) spellings.push_back(fmt::format("\\\\u00{}[{}]", high, digits));
  }
  if (spellings.size() == 1 && spellings.front().starts_with('[')) return spellings.front();
  return fmt::format("({})", fmt::join(spellings, "|"));
}

struct Lengths {
  int64_t least = 0;
  int64_t most = 0;
};

class RegexReader {
 public:
  RegexReader(std::string_view what, std::string_view pattern, const GrammarLimits& limits,
              RegexForm form)
      : what_(what), text_(pattern), limits_(limits), form_(form) {}

  Result<RegexText> read() {
    if (text_.size() > limits_.max_regex_bytes) {
      return invalid_argument(
          fmt::format("[grammar] {} is too long; got {} bytes, expected at "
                      "most {}",
                      what_, text_.size(), limits_.max_regex_bytes));
    }
    constexpr std::string_view kIgnoreCase = "(?i)";
    if (is_at(kIgnoreCase)) {
      ignores_case_ = true;
      at_ = kIgnoreCase.size();
    }
    start_ = at_;
    Lengths lengths;
    QUIRE_RETURN_IF_ERROR(read_alternatives(lengths));
    if (!at_end()) return fail(at_, "a )", " without its (; write \\) for the character");
    return RegexText{.text = std::move(out_),
                     .min_length = lengths.least,
                     .max_length = lengths.most,
                     .repeated = has_alternatives_ ? std::nullopt : std::move(repeated_)};
  }

 private:
  // Returns the error `[grammar] the regex has a ( at character 3REMEDY`; `at` is an offset.
  Status fail(size_t at, std::string_view what, std::string_view remedy) const {
    return refuse(fmt::format("has {} at character {}{}", what,
                              num_characters(text_.substr(0, at)) + 1, remedy));
  }
  Status refuse(std::string_view why) const {
    return invalid_argument(fmt::format("[grammar] {} {}", what_, why));
  }

  std::string_view rest() const { return text_.substr(at_); }
  bool at_end() const { return at_ == text_.size(); }
  bool is_at(std::string_view token) const { return rest().starts_with(token); }
  void copy(size_t num_bytes) {
    out_ += text_.substr(at_, num_bytes);
    at_ += num_bytes;
  }

  Status read_alternatives(Lengths& out) {
    QUIRE_RETURN_IF_ERROR(read_sequence(out));
    while (is_at("|")) {
      copy(1);
      if (depth_ == 0) has_alternatives_ = true;
      Lengths lengths;
      QUIRE_RETURN_IF_ERROR(read_sequence(lengths));
      out = {.least = std::min(out.least, lengths.least), .most = std::max(out.most, lengths.most)};
    }
    return {};
  }

  Status read_sequence(Lengths& out) {
    size_t num_atoms = 0;
    while (!at_end() && !is_at("|") && !is_at(")")) {
      const char c = text_[at_];
      if (c == '^' || c == '$') {
        QUIRE_RETURN_IF_ERROR(check_anchor());
        copy(1);
        continue;
      }
      if (c == '*' || c == '+' || c == '?') {
        return fail(at_, fmt::format("a {}", c),
                    fmt::format(" without anything to repeat; write \\{} for the character", c));
      }
      const size_t begin = out_.size();
      Lengths atom;
      QUIRE_RETURN_IF_ERROR(read_atom(atom));
      const std::string atom_text = depth_ == 0 ? out_.substr(begin) : std::string();
      Lengths repeats = {.least = 1, .most = 1};
      QUIRE_RETURN_IF_ERROR(read_repeat(repeats));
      out = {.least = sum(out.least, product(atom.least, repeats.least)),
             .most = sum(out.most, product(atom.most, repeats.most))};
      if (depth_ > 0) continue;
      const bool is_single = num_atoms++ == 0 && atom.least == 1 && atom.most == 1;
      repeated_ = is_single ? std::optional(atom_text) : std::nullopt;
    }
    return {};
  }

  // Refuses anchors that are not at the ends, because XGrammar ignores them.
  Status check_anchor() const {
    const char anchor = text_[at_];
    const bool is_outermost = anchor == '^' ? at_ == start_ : at_ + 1 == text_.size();
    if (is_outermost && depth_ == 0) return {};
    return fail(at_, std::string_view(&anchor, 1),
                fmt::format(", expected it only at the {1}; remove it, because the whole text must "
                            "match in any case, or write \\{0} for the character",
                            anchor, anchor == '^' ? "start" : "end"));
  }

  Status read_atom(Lengths& out) {
    const char c = text_[at_];
    if (c == '(') return read_group(out);
    out = {.least = 1, .most = 1};
    if (c == '[') return read_class();
    if (c == '\\') {
      size_t length = 0;
      QUIRE_RETURN_IF_ERROR(check_escape(rest(), /*in_class=*/false, length));
      const char kind = text_[at_ + 1];
      const int64_t character = escaped_character(rest().substr(0, length));
      const CharSet set = character < 0 ? escaped_set(kind) : CharSet{{character, character}};
      if (needs_json_form(set)) {
        out_ += json_spellings(set);
        at_ += length;
      } else if (ignores_case_ && character >= 0 && character < 0x80 &&
                 is_letter(static_cast<char>(character))) {
        append_both_cases(static_cast<char>(character));
        at_ += length;
      } else {
        copy(length);
      }
    } else if (c == '{') {
      return fail(at_, "a {", kNoRepeat);
    } else if (c == '.' && form_ == RegexForm::kJsonString) {
      out_ += json_spellings(any_character());
      ++at_;
    } else if (needs_json_form({{static_cast<unsigned char>(c), static_cast<unsigned char>(c)}})) {
      out_ += json_spellings({{c, c}});
      ++at_;
    } else if (ignores_case_ && is_letter(c)) {
      append_both_cases(c);
      ++at_;
    } else {
      copy(static_cast<size_t>(decode_utf8(rest()).num_bytes));
    }
    return {};
  }

  // Returns whether a character of the set is escaped in a JSON string. `set` has bytes of UTF-8 or
  // characters.
  bool needs_json_form(const CharSet& set) const {
    static const CharSet kEscaped = complement_of(kUnescaped);
    return form_ == RegexForm::kJsonString && !intersection_of(set, kEscaped).empty();
  }

  void append_both_cases(char letter) {
    out_ += {'[', letter, static_cast<char>(letter ^ 0x20), ']'};
  }

  Status read_group(Lengths& out) {
    const size_t opened = at_;
    if (++depth_ > limits_.max_nesting) {
      return refuse(
          fmt::format("nests too deeply; got more than {} nested groups", limits_.max_nesting));
    }
    copy(1);
    if (is_at("?")) QUIRE_RETURN_IF_ERROR(read_group_kind(opened));
    QUIRE_RETURN_IF_ERROR(read_alternatives(out));
    if (at_end()) return fail(opened, "a (", " that is not closed; write \\( for the character");
    copy(1);
    --depth_;
    return {};
  }

  // Reads (?: and (?<name>; a name has no effect.
  Status read_group_kind(size_t opened) {
    if (is_at("?:")) {
      copy(2);
      return {};
    }
    for (const std::string_view look : {"?=", "?!", "?<=", "?<!"}) {
      if (!is_at(look)) continue;
      return fail(opened,
                  fmt::format("a look{} ({}…)", look.size() == 2 ? "ahead" : "behind", look),
                  ", which is not supported; write the texts that it allows as alternatives (a|b)");
    }
    const size_t prefix = is_at("?<") ? 2 : is_at("?P<") ? 3 : 0;
    const size_t end = text_.find('>', at_);
    if (prefix == 0 || end == std::string_view::npos || end == at_ + prefix) {
      return fail(opened, "a group (?…)",
                  " of an unknown kind; expected (?:…), (?<name>…), or (?i) at the start");
    }
    at_ = end + 1;
    return {};
  }

  // Reads *, +, ? or {m,n}. A lazy repeat allows the same texts.
  Status read_repeat(Lengths& repeats) {
    const size_t begin = at_;
    if (is_at("*")) {
      repeats = {.least = 0, .most = kUnbounded};
    } else if (is_at("+")) {
      repeats = {.least = 1, .most = kUnbounded};
    } else if (is_at("?")) {
      repeats = {.least = 0, .most = 1};
    } else if (is_at("{")) {
      QUIRE_RETURN_IF_ERROR(read_range(repeats));
    } else {
      return {};
    }
    if (at_ == begin) copy(1);
    if (is_at("?")) ++at_;
    if (is_at("*") || is_at("+") || is_at("?") || is_at("{")) {
      return fail(at_, "a second repeat in a row", "; write a group, as in (a*){2}");
    }
    return {};
  }

  Status read_range(Lengths& repeats) {
    const size_t begin = at_;
    const std::string_view repeat = rest().substr(0, rest().find('}') + 1);
    size_t at = 1;
    bool is_range = !repeat.empty();
    repeats.least = read_count(repeat, at);
    repeats.most = repeats.least;
    if (is_range && at < repeat.size() && repeat[at] == ',') {
      repeats.most = repeat[++at] == '}' ? kUnbounded : read_count(repeat, at);
    }
    is_range = is_range && at + 1 == repeat.size() && repeats.least >= 0 && repeats.most >= 0;
    if (!is_range) {
      return fail(begin, "a {", kNoRepeat);
    }
    for (const int64_t count : {repeats.least, repeats.most}) {
      if (count <= limits_.max_repeat || count == kUnbounded) continue;
      return refuse(fmt::format("repeats too often; got {}, expected at most {}", clipped(repeat),
                                limits_.max_repeat));
    }
    if (repeats.most < repeats.least) {
      return refuse(
          fmt::format("has the repeat {}, whose minimum is above its maximum; write the "
                      "smaller number first",
                      clipped(repeat)));
    }
    copy(repeat.size());
    return {};
  }

  // The number at `at`; -1 if there is none, and INT64_MAX - 1 if it is too large.
  static int64_t read_count(std::string_view repeat, size_t& at) {
    const size_t begin = at;
    while (at < repeat.size() && is_digit(repeat[at])) ++at;
    if (at == begin) return -1;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(repeat.data() + begin, repeat.data() + at, number);
    return error == std::errc() ? number : kUnbounded - 1;
  }

  // Reads a class from its [ to its ].
  Status read_class() {
    const size_t opened = at_;
    const size_t written = out_.size();
    copy(1);
    const bool is_negated = is_at("^");
    if (is_negated) copy(1);
    const size_t first = at_;
    CharSet set;
    std::string other_case;
    bool ends_with_hyphen = false;
    while (!is_at("]")) {
      if (at_end()) return fail(opened, "an unclosed [", "; write \\[ for the character");
      const size_t begin = at_;
      int64_t low = 0;
      QUIRE_RETURN_IF_ERROR(read_class_item(low));
      if (low < 0) std::ranges::copy(escaped_set(text_[begin + 1]), std::back_inserter(set));
      int64_t high = low;
      if (low >= 0 && is_at("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        copy(1);
        QUIRE_RETURN_IF_ERROR(read_class_item(high));
        const std::string range = clipped(text_.substr(begin, at_ - begin));
        if (high < 0) {
          return refuse(
              fmt::format("has the range {}, which ends with a set of characters; write "
                          "\\- for a hyphen",
                          range));
        }
        if (high < low) {
          return refuse(
              fmt::format("has the range {}, whose ends are in the wrong order; write the "
                          "lower character first",
                          range));
        }
      }
      if (low >= 0) set.emplace_back(low, high);
      if (ignores_case_) add_other_case(low, high, other_case, set);
      ends_with_hyphen = text_.substr(begin, at_ - begin) == "-";
    }
    if (at_ == first) {
      return fail(opened, "an empty class",
                  "; expected the characters that it allows, or [\\s\\S] for all");
    }
    // A hyphen stands for itself at the end of a class, but not before more characters.
    if (ends_with_hyphen && !other_case.empty()) out_.insert(out_.size() - 1, 1, '\\');
    out_ += other_case;
    copy(1);
    if (is_negated) set = complement_of(std::move(set));
    if (!needs_json_form(set)) return {};
    out_.resize(written);
    out_ += json_spellings(set);
    return {};
  }

  // Adds the letters of the range in their other case.
  static void add_other_case(int64_t low, int64_t high, std::string& out, CharSet& set) {
    for (const char a : {'A', 'a'}) {
      const int64_t from = std::max<int64_t>(low, a);
      const int64_t to = std::min<int64_t>(high, a + 25);
      if (from > to) continue;
      set.emplace_back(from ^ 0x20, to ^ 0x20);
      out += {static_cast<char>(from ^ 0x20), '-', static_cast<char>(to ^ 0x20)};
    }
  }

  // `out`: the character, or -1 for a set of characters.
  Status read_class_item(int64_t& out) {
    if (at_end()) return {};
    if (text_[at_] == '\\') {
      size_t length = 0;
      QUIRE_RETURN_IF_ERROR(check_escape(rest(), /*in_class=*/true, length));
      out = escaped_character(text_.substr(at_, length));
      copy(length);
      return {};
    }
    const Utf8Char decoded = decode_utf8(rest());
    out = static_cast<int64_t>(decoded.code_point);
    copy(static_cast<size_t>(decoded.num_bytes));
    return {};
  }

  // Refuses escapes that XGrammar does not support: it would read an unknown letter as itself, and
  // a character beyond ASCII as the character with its low byte.
  Status check_escape(std::string_view escape, bool in_class, size_t& length) const {
    if (escape.size() < 2) return refuse("ends with a backslash; write \\\\ for the character");
    const char kind = escape[1];
    if (kind == 'x' || kind == 'u') return check_hex(escape, length);
    length = kind == 'c' ? 3 : 2;
    if (kind == 'c' && (escape.size() < 3 || !is_letter(escape[2]))) {
      return fail(at_, "a \\c", " without its letter");
    }
    if (!in_class && kind >= '1' && kind <= '9') {
      return fail(at_, fmt::format("the backreference \\{}", kind),
                  ", which is not supported; repeat the group's pattern");
    }
    constexpr std::string_view kKnown = "dDwWsSnrtfvae0c";
    const bool is_ascii = static_cast<unsigned char>(kind) < 0x80;
    const bool is_itself = is_ascii && !is_alphanumeric(kind);
    // In a class, \b is a backspace; elsewhere it is a word boundary.
    if (is_itself || kKnown.find(kind) != std::string_view::npos || (in_class && kind == 'b')) {
      return {};
    }
    return fail(at_,
                fmt::format("the escape \\{}", is_ascii ? std::string(1, kind) : "(not ASCII)"),
                ", which is not supported; write the character itself or \\uXXXX");
  }

  // Checks \xXX, \uXXXX or \u{…}.
  Status check_hex(std::string_view escape, size_t& length) const {
    const bool in_braces = escape.starts_with("\\u{");
    const size_t begin = in_braces ? 3 : 2;
    const size_t most = escape[1] == 'x' ? 2 : in_braces ? 6 : 4;
    uint32_t code_point = 0;
    size_t n = 0;
    const auto is_hex_at = [&](size_t at) {
      return at < escape.size() && hex_digit(escape[at]) >= 0;
    };
    for (; n < most && is_hex_at(begin + n); ++n) {
      code_point = code_point * 16 + static_cast<uint32_t>(hex_digit(escape[begin + n]));
    }
    length = begin + n + (in_braces ? 1 : 0);
    const bool is_complete =
        in_braces ? n > 0 && length <= escape.size() && escape[length - 1] == '}' : n == most;
    if (!is_complete) {
      return fail(at_, fmt::format("a \\{}", escape[1]),
                  " without its digits; write \\xXX, \\uXXXX or \\u{…}");
    }
    // XGrammar's \x takes all hexadecimal digits that follow.
    if (escape[1] == 'x' && is_hex_at(length)) {
      return fail(at_, "a \\x", " with more than two digits after it; write \\u00XX");
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
      return refuse(fmt::format("has an escape for U+{:X}, which is not a character", code_point));
    }
    return {};
  }

  const std::string_view what_;
  const std::string_view text_;
  const GrammarLimits& limits_;
  const RegexForm form_;
  size_t at_ = 0;
  size_t start_ = 0;  // after the flags
  size_t depth_ = 0;
  bool ignores_case_ = false;
  bool has_alternatives_ = false;  // outside of groups
  std::string out_;
  std::optional<std::string> repeated_;  // of the last alternative
};

}  // namespace

Result<RegexText> plain_regex(std::string_view what, std::string_view pattern,
                              const GrammarLimits& limits, RegexForm form) {
  return RegexReader(what, pattern, limits, form).read();
}

}  // namespace quire::grammar
