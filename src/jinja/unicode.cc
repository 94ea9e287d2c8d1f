#include "jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/text.h"
#include "jinja/long_upper.h"

namespace quire::jinja {

namespace {

utf8proc_int32_t as_utf8proc(char32_t c) {
  return static_cast<utf8proc_int32_t>(c);
}
utf8proc_category_t category(char32_t c) {
  return utf8proc_category(as_utf8proc(c));
}
char32_t simple_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(as_utf8proc(c)));
}
bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
}
bool in(utf8proc_category_t c, std::initializer_list<utf8proc_category_t> set) {
  return std::find(set.begin(), set.end(), c) != set.end();
}

bool is_alpha(char32_t c) {
  return in(category(c), {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT,
                          UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO});
}
bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}
bool is_digit(char32_t c) {
  const bool super_or_subscript = c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 ||
                                  (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
  return is_decimal(c) || super_or_subscript || (c >= 0x2460 && c <= 0x2468);
}
bool is_numeric(char32_t c) {
  return in(category(c), {UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO});
}
bool is_upper_char(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU;
}
bool is_lower_char(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL;
}
bool is_title_char(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}
bool is_cased(char32_t c) {
  return is_upper_char(c) || is_lower_char(c) || is_title_char(c);
}

void append_upper(char32_t c, std::u32string& out) {
  const auto* end = std::end(kLongUpper);
  const auto* row = std::lower_bound(std::begin(kLongUpper), end, c,
                                     [](const LongUpper& r, char32_t x) { return r.from < x; });
  if (row != end && row->from == c) {
    out += row->to;
  } else {
    out += static_cast<char32_t>(utf8proc_toupper(as_utf8proc(c)));
  }
}

void append_title(char32_t c, std::u32string& out) {
  std::u32string capital;
  append_upper(c, capital);
  if (capital.size() == 1) {
    out += static_cast<char32_t>(utf8proc_totitle(as_utf8proc(c)));
    return;
  }
  out += capital[0];
  for (size_t i = 1; i < capital.size(); ++i) out += simple_lower(capital[i]);
}

void append_lower(std::u32string_view text, size_t idx, std::u32string& out) {
  const char32_t c = text[idx];
  if (c == 0x130) {  // the only character whose lower case has two
    out += U"i\u0307";
  } else if (c == 0x3a3 && idx > 0 && is_cased(text[idx - 1]) &&
             (idx + 1 == text.size() || !is_cased(text[idx + 1]))) {
    out += char32_t{0x3c2};  // final sigma
  } else {
    out += simple_lower(c);
  }
}

template <typename Each>
std::string map_chars(std::string_view text, Each each) {
  const std::u32string chars = to_code_points(text);
  std::u32string mapped;
  mapped.reserve(chars.size());
  for (size_t i = 0; i < chars.size(); ++i) each(chars, i, mapped);
  return from_code_points(mapped);
}

bool all_of(std::string_view text, bool (*test)(char32_t)) {
  for (const auto& [c, bytes] : Chars(text)) {
    if (!test(c)) return false;
  }
  return !text.empty();
}

bool is_title_text(std::string_view text) {
  bool previous_cased = false;
  bool any = false;
  for (const auto& [c, bytes] : Chars(text)) {
    if (is_upper_char(c) || is_title_char(c)) {
      if (previous_cased) return false;
    } else if (is_lower_char(c)) {
      if (!previous_cased) return false;
    }
    previous_cased = is_cased(c);
    any = any || previous_cased;
  }
  return any;
}

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  const char32_t first = decode_utf8(text).code_point;
  return (first == '_' || is_alpha(first)) && all_of(text, is_word);
}

// Whether the text has cased characters and none of them is of the `wrong` case.
bool is_all_case(std::string_view text, bool (*wrong)(char32_t)) {
  bool any = false;
  for (const auto& [c, bytes] : Chars(text)) {
    if (wrong(c) || is_title_char(c)) return false;
    any = any || is_cased(c);
  }
  return any;
}

// The characters that strip() removes, as one bit per code point up to the highest, so that a
// lookup takes constant time for any set.
class StripSet {
 public:
  explicit StripSet(std::optional<std::string_view> chars) : is_space_(!chars) {
    for (const auto& [c, bytes] : Chars(chars.value_or(""))) {
      if (c >= bits_.size()) bits_.resize(c + 1);
      bits_[c] = true;
    }
  }
  bool contains(char32_t c) const { return is_space_ ? is_space(c) : c < bits_.size() && bits_[c]; }

 private:
  bool is_space_;
  std::vector<bool> bits_;
};

}  // namespace

size_t count_chars(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

size_t byte_of_char(std::string_view text, size_t char_idx) {
  size_t byte = 0;
  for (; byte < text.size(); ++byte) {
    if ((text[byte] & 0xc0) != 0x80 && char_idx-- == 0) break;
  }
  return byte;
}

void Chars::Iterator::decode_wide() {
  const Utf8Char c = decode_utf8(rest_);
  now_ = {c.code_point, rest_.substr(0, static_cast<size_t>(c.num_bytes))};
}

std::u32string to_code_points(std::string_view text) {
  std::u32string chars;
  chars.reserve(text.size());
  for (const auto& [c, bytes] : Chars(text)) chars += c;
  return chars;
}

std::string from_code_points(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_utf8(c, out);
  return out;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}
bool is_word(char32_t c) {
  return c == '_' || is_alpha(c) || is_numeric(c);
}
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  return !in(category(c), {UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CS,
                           UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_CN, UTF8PROC_CATEGORY_ZL,
                           UTF8PROC_CATEGORY_ZP, UTF8PROC_CATEGORY_ZS});
}

std::string_view strip(std::string_view text, std::optional<std::string_view> chars, bool left,
                       bool right) {
  const StripSet set(chars);
  while (left && !text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!set.contains(c.code_point)) break;
    text.remove_prefix(static_cast<size_t>(c.num_bytes));
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (text[start] & 0xc0) == 0x80) --start;
    if (!set.contains(decode_utf8(text.substr(start)).code_point)) break;
    text = text.substr(0, start);
  }
  return text;
}

std::string upper(std::string_view text) {
  return map_chars(text, [](const std::u32string& chars, size_t i, std::u32string& out) {
    append_upper(chars[i], out);
  });
}

std::string lower(std::string_view text) {
  return map_chars(text, append_lower);
}

std::string capitalize(std::string_view text) {
  return map_chars(text, [](const std::u32string& chars, size_t i, std::u32string& out) {
    i == 0 ? append_title(chars[i], out) : append_lower(chars, i, out);
  });
}

std::string title(std::string_view text) {
  return map_chars(text, [](const std::u32string& chars, size_t i, std::u32string& out) {
    i == 0 || !is_cased(chars[i - 1]) ? append_title(chars[i], out) : append_lower(chars, i, out);
  });
}

std::string swapcase(std::string_view text) {
  return map_chars(text, [](const std::u32string& chars, size_t i, std::u32string& out) {
    is_upper_char(chars[i]) ? append_lower(chars, i, out) : append_upper(chars[i], out);
  });
}

std::optional<bool> classify(std::string_view question, std::string_view text) {
  if (question == "isalpha") return all_of(text, is_alpha);
  if (question == "isdecimal") return all_of(text, is_decimal);
  if (question == "isdigit") return all_of(text, is_digit);
  if (question == "isnumeric") return all_of(text, is_numeric);
  if (question == "isalnum") {
    return all_of(text, [](char32_t c) { return is_alpha(c) || is_numeric(c); });
  }
  if (question == "isspace") return all_of(text, is_space);
  if (question == "isascii") return is_ascii(text);
  if (question == "isprintable") return text.empty() || all_of(text, is_printable);
  if (question == "isupper") return is_all_case(text, is_lower_char);
  if (question == "islower") return is_all_case(text, is_upper_char);
  if (question == "istitle") return is_title_text(text);
  if (question == "isidentifier") return is_identifier(text);
  return std::nullopt;
}

std::string_view take_line(std::string_view& text, bool keep_end) {
  const auto ends_line = [](char32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  std::string_view line = text;
  for (const auto& [c, bytes] : Chars(text)) {
    if (!ends_line(c)) continue;
    const auto line_bytes = static_cast<size_t>(bytes.data() - text.data());
    size_t end = line_bytes + bytes.size();
    if (c == '\r' && text.substr(end).starts_with('\n')) ++end;
    line = text.substr(0, keep_end ? end : line_bytes);
    text.remove_prefix(end);
    return line;
  }
  text = {};
  return line;
}

}  // namespace quire::jinja
