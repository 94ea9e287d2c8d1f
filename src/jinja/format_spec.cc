#include "jinja/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/budget.h"
#include "jinja/unicode.h"
#include "jinja/value.h"

namespace quire::jinja {

int64_t read_count(std::string_view& text) {
  int64_t count = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    count = std::min<int64_t>(count * 10 + (text[0] - '0'), kMaxWidth + 1);
    text.remove_prefix(1);
  }
  if (count > kMaxWidth) fail(fmt::format("a width is too large; expected at most {}", kMaxWidth));
  return count;
}

namespace {

void write_padded(std::string_view sign, std::string_view body, const FormatSpec& spec,
                  char default_align, TextBuilder& out) {
  const char align = spec.align == '\0' ? default_align : spec.align;
  const auto num_chars = static_cast<int64_t>(count_chars(sign) + count_chars(body));
  const auto missing = static_cast<size_t>(std::max<int64_t>(spec.width - num_chars, 0));
  const size_t left = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  if (align == '=') out.append(sign);
  out.append_times(left, spec.fill);
  if (align != '=') out.append(sign);
  out.append(body);
  out.append_times(missing - left, spec.fill);
}

std::string grouped(const std::string& digits, char separator) {
  if (separator == '\0') return digits;
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out;
}

}  // namespace

void write_integer(int64_t number, const FormatSpec& spec, TextBuilder& out) {
  const uint64_t magnitude =
      number < 0 ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string digits;
  std::string prefix = number < 0 ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  switch (spec.type) {
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      if (spec.alternate) prefix += "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      if (spec.alternate) prefix += "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      if (spec.alternate) prefix += "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      if (spec.alternate) prefix += "0b";
      break;
    default:
      digits = grouped(fmt::format("{}", magnitude), spec.grouping);
  }
  if (spec.precision > static_cast<int64_t>(digits.size())) {  // possible only with %
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  }
  write_padded(prefix, digits, spec, '>', out);
}

void write_float(double number, const FormatSpec& spec, TextBuilder& out) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  double magnitude = std::fabs(number);
  std::string digits;
  char type = spec.type;
  if (type == '%') magnitude *= 100;
  if (!std::isfinite(magnitude)) {
    digits = std::isnan(magnitude) ? "nan" : "inf";
  } else if (type == '\0' && spec.precision < 0) {
    digits = float_repr(magnitude);
  } else {
    const bool by_default = type == '\0';
    if (by_default) type = 'g';
    if (type == '%') type = 'f';
    const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    const std::string layout = std::string(spec.alternate ? "%#.*" : "%.*") + type;
    char buffer[8192];
    const int size = snprintf(buffer, sizeof(buffer), layout.c_str(), precision, magnitude);
    digits.assign(buffer,
                  std::min<size_t>(static_cast<size_t>(std::max(size, 0)), sizeof(buffer) - 1));
    const bool plain = digits.find_first_not_of("0123456789") == std::string::npos;
    if (by_default && plain) digits += ".0";
  }
  if (spec.type == 'F' || spec.type == 'E' || spec.type == 'G') digits = upper(digits);
  digits = grouped(digits, spec.grouping);
  if (spec.type == '%') digits += '%';
  write_padded(sign, digits, spec, '>', out);
}

void write_text(std::string_view text, const FormatSpec& spec, TextBuilder& out) {
  out.budget().read(text.size());
  if (spec.precision >= 0) {
    text = text.substr(0, byte_of_char(text, static_cast<size_t>(spec.precision)));
  }
  write_padded("", text, spec, '<', out);
}

}  // namespace quire::jinja
