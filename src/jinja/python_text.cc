#include "jinja/python_text.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "base/text.h"
#include "jinja/chat_template.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

namespace {

utf8proc_int32_t as_utf8proc(char32_t c) {
  return static_cast<utf8proc_int32_t>(c);
}
bool in_category(char32_t c, std::initializer_list<utf8proc_category_t> set) {
  return std::find(set.begin(), set.end(), utf8proc_category(as_utf8proc(c))) != set.end();
}
bool is_alpha(char32_t c) {
  return in_category(c, {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT,
                         UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO});
}
bool is_cased(char32_t c) {
  return in_category(c, {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT});
}

char32_t simple_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(as_utf8proc(c)));
}
char32_t simple_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(as_utf8proc(c)));
}

// A character's upper case has several characters ("ß" becomes "SS") exactly if it is not upper
// case and case folding gives several; these are then changed to upper case one by one.
void append_upper(char32_t c, std::u32string& out) {
  if (c >= 0x80 && !in_category(c, {UTF8PROC_CATEGORY_LU})) {
    utf8proc_int32_t folded[4] = {};
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(as_utf8proc(c), folded, 4, UTF8PROC_CASEFOLD, &boundary);
    if (count > 1) {
      for (int i = 0; i < count; ++i) out += simple_upper(static_cast<char32_t>(folded[i]));
      return;
    }
  }
  out += simple_upper(c);
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

// Returns whether the text has cased characters and none of them is of the `wrong` case.
bool is_all_case(std::string_view text, utf8proc_category_t wrong) {
  bool any = false;
  for (const auto& [c, bytes] : Chars(text)) {
    if (in_category(c, {wrong, UTF8PROC_CATEGORY_LT})) return false;
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
  return c == '_' || is_alpha(c) ||
         in_category(c, {UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO});
}
bool is_printable(char32_t c) {
  return c == ' ' ||
         !in_category(c, {UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CS,
                          UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_CN, UTF8PROC_CATEGORY_ZL,
                          UTF8PROC_CATEGORY_ZP, UTF8PROC_CATEGORY_ZS});
}

bool is_identifier(std::string_view text) {
  bool first = true;
  for (const auto& [c, bytes] : Chars(text)) {
    if (first ? c != '_' && !is_alpha(c) : !is_word(c)) return false;
    first = false;
  }
  return !first;
}
bool is_lower_case(std::string_view text) {
  return is_all_case(text, UTF8PROC_CATEGORY_LU);
}
bool is_upper_case(std::string_view text) {
  return is_all_case(text, UTF8PROC_CATEGORY_LL);
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

std::string title_filter(std::string_view text) {
  const auto separates = [](char32_t c) {
    return c == '-' || is_space(c) || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;   // of the word, which may be empty
    size_t first = 0;  // the size of its first character
    for (const auto& [c, bytes] : Chars(text.substr(at))) {
      if (separates(c)) break;
      if (end == at) first = bytes.size();
      end += bytes.size();
    }
    out += upper(text.substr(at, first)) + lower(text.substr(at + first, end - at - first));
    const auto size =
        end == text.size() ? 0 : static_cast<size_t>(decode_utf8(text.substr(end)).num_bytes);
    out += text.substr(end, size);
    at = end + size;
  }
  return out;
}

std::string_view take_line(std::string_view& text) {
  const auto ends_line = [](char32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  for (const auto& [c, bytes] : Chars(text)) {
    if (!ends_line(c)) continue;
    const std::string_view line(text.data(), static_cast<size_t>(bytes.data() - text.data()));
    text.remove_prefix(line.size() + bytes.size());
    if (c == '\r' && text.starts_with('\n')) text.remove_prefix(1);
    return line;
  }
  return std::exchange(text, {});
}

std::string_view shortened(std::string_view text) {
  constexpr size_t kMaxBytes = 200;
  if (text.size() <= kMaxBytes) return text;
  return text.substr(0, complete_utf8_prefix(text.substr(0, kMaxBytes)));
}

// ---- numbers

namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 99;
}

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

bool take_sign(std::string_view& text) {  // returns whether it is a minus
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

}  // namespace

size_t count_digits(std::string_view text, int base) {
  const auto is_digit = [&](size_t i) { return i < text.size() && digit_value(text[i]) < base; };
  size_t end = 0;
  while (is_digit(end) || (end > 0 && end < text.size() && text[end] == '_' && is_digit(end + 1))) {
    ++end;
  }
  return end;
}

size_t count_exponent(std::string_view text) {
  if (text.empty() || (text[0] | 0x20) != 'e') return 0;
  const size_t sign = text.size() > 1 && (text[1] == '+' || text[1] == '-');
  const size_t n = count_digits(text.substr(1 + sign));
  return n == 0 ? 0 : 1 + sign + n;
}

std::optional<int64_t> digits_to_int(std::string_view digits, bool negative, int base) {
  const std::string plain = (negative ? "-" : "") + without_underscores(digits);
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(plain.data(), plain.data() + plain.size(), number, base);
  if (error != std::errc{} || end != plain.data() + plain.size()) return std::nullopt;
  return number;
}

double digits_to_float(std::string_view digits) {
  const std::string plain = without_underscores(digits);
  double number = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  // from_chars does not distinguish overflow from underflow; strtod does.
  return result.ec == std::errc{} ? number : std::strtod(plain.c_str(), nullptr);
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, std::nullopt, true, true);
  const bool negative = take_sign(text);
  const size_t kind = text.size() > 2 && text[0] == '0'
                          ? std::string_view("box").find(static_cast<char>(text[1] | 0x20))
                          : std::string_view::npos;
  const int prefixed = kind == std::string_view::npos ? 0 : kind == 0 ? 2 : kind == 1 ? 8 : 16;
  if (prefixed != 0 && (base == 0 || base == prefixed)) {
    base = prefixed;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  } else if (base == 0) {
    if (text.starts_with('0') && text.find_first_not_of("0_") != std::string_view::npos) {
      return std::nullopt;
    }
    base = 10;
  }
  if (base < 2 || base > 36) fail("int() base must be >= 2 and <= 36, or 0");
  if (text.empty() || count_digits(text, base) != text.size()) return std::nullopt;
  const std::optional<int64_t> number = digits_to_int(text, negative, base);
  if (!number) fail("an integer is beyond 64 bits");
  return number;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, std::nullopt, true, true);
  const double sign = take_sign(text) ? -1 : 1;
  const std::string word = text.size() <= 8 ? lower(text) : "";
  if (word == "inf" || word == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  const size_t whole = count_digits(text);
  size_t end = whole;
  size_t fraction = 0;
  if (end < text.size() && text[end] == '.') {
    fraction = count_digits(text.substr(end + 1));
    end += 1 + fraction;
  }
  if (whole + fraction == 0) return std::nullopt;
  end += count_exponent(text.substr(end));
  if (end != text.size()) return std::nullopt;
  return sign * digits_to_float(text);
}

// ---- JSON

namespace {

class JsonDumper {
 public:
  JsonDumper(const JsonStyle& style, Budget& budget) : style_(style), out_(budget) {}

  MarkedText dump(const Value& value) {
    write(value, 0);
    return out_.take();
  }

 private:
  std::string number(const Value& value) const {
    if (value.is_bool()) return value.as_bool() ? "true" : "false";
    if (value.is_int()) return fmt::format("{}", value.as_int());
    const double real = value.as_float();
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
    return float_repr(real);
  }

  void new_line(int depth) {
    if (!style_.indent) return;
    out_.append_literal("\n");
    out_.append_times(static_cast<size_t>(depth), *style_.indent);
  }

  void write_text(const MarkedText& text) {
    const auto escape = [this](char32_t c, std::string_view) -> std::string {
      constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
      constexpr std::string_view kTo = "\"\\bfnrt";
      const size_t simple = c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
      if (simple != std::string_view::npos) return {'\\', kTo[simple]};
      const auto code = static_cast<uint32_t>(c);
      if (code >= 0x20 && (code < 0x7f || !style_.ensure_ascii)) return {};
      if (code < 0x10000) return fmt::format("\\u{:04x}", code);
      return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                         0xdc00 + ((code - 0x10000) & 0x3ff));
    };
    out_.append_literal("\"");
    write_escaped(text, out_, escape);
    out_.append_literal("\"");
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_text(*key.text());
    if (key.is_number()) return write_text({number(key), {}});
    if (key.is_none()) return write_text({"null", {}});
    fail(fmt::format("keys must be str, int, float, bool or None, not {}", key.type_name()));
  }

  void write_dict(const Dict& dict, int depth) {
    if (dict.entries().empty()) return out_.append_literal("{}");
    out_.budget().visit(dict.entries().size());
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const Dict::Entry* a, const Dict::Entry* b) {
                         return less(a->first, b->first, out_.budget());
                       });
    }
    out_.append_literal("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line(depth + 1);
      write_key(entries[i]->first);
      out_.append(style_.key_separator);
      write(entries[i]->second, depth + 1);
    }
    new_line(depth);
    out_.append_literal("}");
  }

  void write_sequence(const Sequence& sequence, int depth) {
    if (sequence.items.empty()) return out_.append_literal("[]");
    out_.append_literal("[");
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line(depth + 1);
      write(sequence.items[i], depth + 1);
    }
    new_line(depth);
    out_.append_literal("]");
  }

  void write(const Value& value, int depth) {
    out_.budget().step();
    if (value.is_none()) return out_.append_literal("null");
    if (value.is_number()) return out_.append_literal(number(value));
    if (value.is_string()) return write_text(*value.text());
    if (value.is_sequence()) return write_sequence(*value.sequence(), depth);
    if (value.is_dict()) return write_dict(*value.dict(), depth);
    fail(fmt::format("Object of type {} is not JSON serializable", value.type_name()));
  }

  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

MarkedText dump_json(const Value& value, const JsonStyle& style, Budget& budget) {
  return JsonDumper(style, budget).dump(value);
}

}  // namespace quire::jinja

namespace quire {

jinja::Value value_from_json(simdjson::dom::element element, uint32_t owner) {
  using jinja::Value;
  switch (element.type()) {
    case simdjson::dom::element_type::ARRAY: {
      std::vector<Value> items;
      for (const simdjson::dom::element item : simdjson::dom::array(element)) {
        items.push_back(value_from_json(item, owner));
      }
      return Value::list(std::move(items));
    }
    case simdjson::dom::element_type::OBJECT: {
      std::vector<jinja::Dict::Entry> entries;
      for (const auto& [key, value] : simdjson::dom::object(element)) {
        entries.emplace_back(Value::string(key, owner), value_from_json(value, owner));
      }
      return Value::of(Value::DictPtr(jinja::Dict::build(std::move(entries))));
    }
    case simdjson::dom::element_type::INT64:
      return Value::integer(int64_t(element));
    case simdjson::dom::element_type::UINT64:
      return Value::real(static_cast<double>(uint64_t(element)));
    case simdjson::dom::element_type::DOUBLE:
      return Value::real(double(element));
    case simdjson::dom::element_type::STRING:
      return Value::string(std::string_view(element), owner);
    case simdjson::dom::element_type::BOOL:
      return Value::boolean(bool(element));
    case simdjson::dom::element_type::NULL_VALUE:
      break;
  }
  return Value::none();
}

}  // namespace quire
