#include "jinja/string_literal.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/text.h"
#include "jinja/budget.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 99;
}

// Counts the bytes of digits of `base`, which single underscores may separate.
size_t digits(std::string_view text, int base = 10) {
  size_t end = 0;
  while (end < text.size()) {
    if (digit_value(text[end]) < base) {
      ++end;
    } else if (text[end] == '_' && end > 0 && end + 1 < text.size() &&
               digit_value(text[end + 1]) < base) {
      ++end;
    } else {
      break;
    }
  }
  return end;
}

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

// The size in bytes of the exponent at the start of `text` ("e-3"), or 0.
size_t exponent(std::string_view text) {
  if (text.empty() || (text[0] | 0x20) != 'e') return 0;
  const size_t sign = text.size() > 1 && (text[1] == '+' || text[1] == '-');
  const size_t n = digits(text.substr(1 + sign));
  return n == 0 ? 0 : 1 + sign + n;
}

double to_double(std::string_view plain) {
  double number = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  (void)end;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not tell overflow from underflow; strtod does.
    number = std::strtod(std::string(plain).c_str(), nullptr);
  }
  return number;
}

std::optional<int64_t> to_int(std::string_view plain, int base) {
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(plain.data(), plain.data() + plain.size(), number, base);
  if (error != std::errc{} || end != plain.data() + plain.size()) return std::nullopt;
  return number;
}

int prefix_base(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  switch (text[1] | 0x20) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 0;
  }
}

// Reads `num_digits` hexadecimal digits and appends the character that they encode.
bool append_hex(std::string_view& text, size_t num_digits, std::string& out) {
  if (text.size() < num_digits) return false;
  uint32_t code_point = 0;
  for (size_t i = 0; i < num_digits; ++i) {
    if (digit_value(text[i]) >= 16) return false;
    code_point = code_point * 16 + static_cast<uint32_t>(digit_value(text[i]));
  }
  if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point < 0xe000)) return false;
  append_utf8(static_cast<char32_t>(code_point), out);
  text.remove_prefix(num_digits);
  return true;
}

void append_octal(char first, std::string_view& text, std::string& out) {
  uint32_t code_point = static_cast<uint32_t>(first - '0');
  for (int i = 0; i < 2 && !text.empty() && text[0] >= '0' && text[0] <= '7'; ++i) {
    code_point = code_point * 8 + static_cast<uint32_t>(text[0] - '0');
    text.remove_prefix(1);
  }
  append_utf8(static_cast<char32_t>(code_point), out);
}

}  // namespace

std::optional<std::string> unescape(std::string_view text) {
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
    const Utf8Char escaped = decode_utf8(text);
    const char e = text[0];
    text.remove_prefix(static_cast<size_t>(escaped.num_bytes));
    if (const size_t simple = kFrom.find(e); simple != std::string_view::npos) {
      out += kTo[simple];
    } else if (e == '\n') {
      continue;
    } else if (e == 'x' || e == 'u' || e == 'U') {
      if (!append_hex(text, e == 'x' ? 2 : e == 'u' ? 4 : 8, out)) return std::nullopt;
    } else if (e >= '0' && e <= '7') {
      append_octal(e, text, out);
    } else if (e == 'N') {
      return std::nullopt;  // \N{name} needs a table of names, which Quire does not have
    } else if (escaped.code_point < 0x80) {
      out += '\\';
      out += e;
    } else {
      // Jinja first escapes the text to ASCII and then decodes it, so the backslash escapes the
      // backslash of the character's own escape.
      const auto code = static_cast<uint32_t>(escaped.code_point);
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  return out;
}

NumberLiteral read_number(std::string_view text, bool allow_float) {
  NumberLiteral literal;
  const size_t whole = digits(text);
  if (whole == 0) return literal;
  if (allow_float) {
    size_t end = whole;
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
      end += 1 + digits(text.substr(end + 1));
    }
    end += exponent(text.substr(end));
    if (end > whole) {
      literal.num_bytes = end;
      literal.value = Value::real(to_double(without_underscores(text.substr(0, end))));
      return literal;
    }
  }
  int base = prefix_base(text);
  size_t start = 2;
  // In 0x_1f, an underscore may follow the prefix.
  if (base != 0 && text.size() > 2 && text[2] == '_') start = 3;
  size_t count = base == 0 ? 0 : digits(text.substr(std::min(start, text.size())), base);
  if (count == 0) {
    base = 10;
    start = 0;
    // Only zeros may follow a leading zero: "012" is 0 and then 12.
    count = text[0] == '0' ? std::min(whole, text.find_first_not_of("0_")) : whole;
  }
  literal.num_bytes = start + count;
  if (const auto n = to_int(without_underscores(text.substr(start, count)), base)) {
    literal.value = Value::integer(*n);
  }
  return literal;
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, std::nullopt, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const int prefixed = prefix_base(text);
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
  if (text.empty() || digits(text, base) != text.size()) return std::nullopt;
  const auto number = to_int((negative ? "-" : "") + without_underscores(text), base);
  if (!number) fail("an integer is beyond 64 bits");
  return number;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, std::nullopt, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const double sign = negative ? -1 : 1;
  const std::string word = lower(text.substr(0, 9));
  if (text.size() <= 8 && (word == "inf" || word == "infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (text.size() == 3 && word == "nan") return std::numeric_limits<double>::quiet_NaN();
  const size_t whole = digits(text);
  size_t end = whole;
  size_t fraction = 0;
  if (end < text.size() && text[end] == '.') {
    fraction = digits(text.substr(end + 1));
    end += 1 + fraction;
  }
  if (whole + fraction == 0) return std::nullopt;
  end += exponent(text.substr(end));
  if (end != text.size()) return std::nullopt;
  return sign * to_double(without_underscores(text));
}

}  // namespace quire::jinja
