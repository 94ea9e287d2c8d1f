// Python's two ways to format: "%05.1f" % x and "{:>8}".format(x).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "tokenizer/template/interpreter.h"
#include "tokenizer/template/unicode.h"

namespace quire::jinja {

namespace {

constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxPrecision = 4096;

struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ or = (between sign and digits); none: by type
  char sign = '-';
  bool alternate = false;
  char grouping = '\0';
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

int64_t read_count(std::string_view& text) {
  int64_t count = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    count = std::min<int64_t>(count * 10 + (text[0] - '0'), kMaxWidth + 1);
    text.remove_prefix(1);
  }
  if (count > kMaxWidth) fail(fmt::format("a width is too large; expected at most {}", kMaxWidth));
  return count;
}

std::string padded(std::string_view sign, std::string_view body, const Spec& spec,
                   char default_align) {
  const char align = spec.align == '\0' ? default_align : spec.align;
  const int64_t missing = spec.width - static_cast<int64_t>(count_chars(sign) + count_chars(body));
  std::string left, right;
  for (int64_t i = 0; i < missing; ++i) {
    const bool goes_left = align == '>' || align == '=' || (align == '^' && i < missing / 2);
    (goes_left ? left : right) += spec.fill;
  }
  std::string out(align == '=' ? std::string(sign) + left : left + std::string(sign));
  return out + std::string(body) + right;
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

std::string format_integer(int64_t number, const Spec& spec) {
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
  if (spec.precision > static_cast<int64_t>(digits.size())) {  // only by way of %
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  }
  return padded(prefix, digits, spec, '>');
}

std::string format_float(double number, const Spec& spec) {
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
  return padded(sign, digits, spec, '>');
}

std::string format_text(std::string_view text, const Spec& spec) {
  if (spec.precision >= 0) {
    text = text.substr(0, byte_of_char(text, static_cast<size_t>(spec.precision)));
  }
  return padded("", text, spec, '<');
}

// ---- "%"

class PercentFormatter {
 public:
  PercentFormatter(Interpreter& interpreter, std::string_view format, const Value& args)
      : interpreter_(interpreter), rest_(format), args_(args), out_(interpreter.budget) {}

  std::string run() {
    while (!rest_.empty()) {
      const size_t percent = std::min(rest_.find('%'), rest_.size());
      out_.append(rest_.substr(0, percent));
      rest_.remove_prefix(percent);
      if (!rest_.empty()) directive();
    }
    const bool all_used = args_.is_tuple()
                              ? next_ == args_.items().size()
                              : next_ == 1 || used_key_ || args_.is_dict() || args_.is_list();
    if (!all_used) fail("not all arguments converted during string formatting");
    return out_.take();
  }

 private:
  const Value& next_arg() {
    if (args_.is_tuple() ? next_ >= args_.items().size() : next_ >= 1) {
      fail("not enough arguments for format string");
    }
    return args_.is_tuple() ? args_.items()[next_++] : (++next_, args_);
  }
  void directive();
  Value argument();
  void flags(Spec& spec);
  int64_t count_or_star() {
    if (!rest_.starts_with('*')) return read_count(rest_);
    rest_.remove_prefix(1);
    const Value& count = next_arg();
    if (!count.is_integral()) fail("* wants int");
    return std::clamp<int64_t>(count.as_int(), -kMaxWidth, kMaxWidth);
  }
  std::string number(const Value& value, Spec spec);

  Interpreter& interpreter_;
  std::string_view rest_;
  const Value& args_;
  TextBuilder out_;
  size_t next_ = 0;
  bool used_key_ = false;
};

void PercentFormatter::flags(Spec& spec) {
  bool left = false, zero = false;
  for (; !rest_.empty(); rest_.remove_prefix(1)) {
    const char c = rest_[0];
    if (c == '-') {
      left = true;
    } else if (c == '0') {
      zero = true;
    } else if (c == '+' || (c == ' ' && spec.sign != '+')) {
      spec.sign = c;
    } else if (c == '#') {
      spec.alternate = true;
    } else if (c != ' ') {
      break;
    }
  }
  if (zero && !left) spec.fill = "0";
  spec.align = left ? '<' : zero ? '=' : '>';
}

std::string PercentFormatter::number(const Value& value, Spec spec) {
  if (value.is_undefined()) fail(value.undefined_reason());
  if (!value.is_number()) {
    fail(
        fmt::format("%{} format: a real number is required, not {}", spec.type, value.type_name()));
  }
  if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
    return format_float(value.as_float(), spec);
  }
  if (value.is_integral()) return format_integer(value.as_int(), spec);
  if (spec.type != 'd' && spec.type != 'i' && spec.type != 'u') {
    fail(fmt::format("%{} format: an integer is required, not float", spec.type));
  }
  if (!(std::fabs(value.as_float()) < 9223372036854775808.0)) {
    fail("an integer is beyond 64 bits");
  }
  return format_integer(static_cast<int64_t>(value.as_float()), spec);
}

Value PercentFormatter::argument() {
  if (!rest_.starts_with('(')) return Value::undefined();
  const size_t end = rest_.find(')');
  if (end == std::string_view::npos) fail("incomplete format key");
  if (!args_.is_dict()) fail("format requires a mapping");
  const std::string key(rest_.substr(1, end - 1));
  rest_.remove_prefix(end + 1);
  used_key_ = true;
  const Value* value = args_.dict()->find(key);
  if (value == nullptr) fail(fmt::format("'{}'", key));
  return *value;
}

void PercentFormatter::directive() {
  rest_.remove_prefix(1);
  const bool keyed = rest_.starts_with('(');
  const Value by_key = argument();
  Spec spec;
  flags(spec);
  spec.width = count_or_star();
  if (spec.width < 0) {
    spec.width = -spec.width;
    spec.align = '<';
  }
  if (rest_.starts_with('.')) {
    rest_.remove_prefix(1);
    spec.precision = std::clamp<int64_t>(count_or_star(), 0, kMaxWidth);
  }
  while (!rest_.empty() && std::string_view("hlL").find(rest_[0]) != std::string_view::npos) {
    rest_.remove_prefix(1);
  }
  if (rest_.empty()) fail("incomplete format");
  spec.type = rest_[0];
  rest_.remove_prefix(1);
  if (spec.type == '%') return out_.append("%");
  const Value value = keyed ? by_key : next_arg();
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
    spec.fill = " ";
    if (spec.align == '=') spec.align = '>';
    const std::string text =
        spec.type == 's' ? to_str(value, interpreter_.budget) : to_repr(value, interpreter_.budget);
    return out_.append(format_text(text, spec));
  }
  if (std::string_view("diouxXeEfFgG").find(spec.type) == std::string_view::npos) {
    fail(fmt::format("unsupported format character '{}'", spec.type));
  }
  if (spec.precision > kMaxPrecision) fail("a precision is too large");
  out_.append(number(value, spec));
}

// ---- str.format

Spec parse_spec(std::string_view text) {
  Spec spec;
  const auto is_align = [](std::string_view t) {
    return !t.empty() && std::string_view("<>^=").find(t[0]) != std::string_view::npos;
  };
  const auto first = text.empty() ? 0 : static_cast<size_t>(decode_utf8(text).num_bytes);
  if (first > 0 && is_align(text.substr(first))) {
    spec.fill = std::string(text.substr(0, first));
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (is_align(text)) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](std::string_view set) {
    if (text.empty() || set.find(text[0]) == std::string_view::npos) return '\0';
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != '\0';
  if (take("0") != '\0' && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = read_count(text);
  spec.grouping = take(",_");
  if (take(".") != '\0') {
    if (text.empty() || text[0] < '0' || text[0] > '9') fail("Format specifier missing precision");
    spec.precision = read_count(text);
  }
  spec.type = take("bdeEfFgGnosxX%");
  if (!text.empty()) fail("Invalid format specifier");
  return spec;
}

std::string format_value(Interpreter& interpreter, const Value& value, std::string_view text) {
  if (text.empty()) return to_str(value, interpreter.budget);
  Spec spec = parse_spec(text);
  const bool wants_float = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (spec.type != '\0' && wants_float && value.is_number()) {
    if (spec.precision > kMaxPrecision) fail("a precision is too large");
    return format_float(value.as_float(), spec);
  }
  if (value.is_float()) {
    if (spec.type != '\0') fail(fmt::format("Unknown format code '{}' for a float", spec.type));
    if (spec.precision > kMaxPrecision) fail("a precision is too large");
    return format_float(value.as_float(), spec);
  }
  if (value.is_int() || (value.is_bool() && spec.type != '\0')) {
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (spec.type == 's') fail("Unknown format code 's' for object of type 'int'");
    return format_integer(value.as_int(), spec);
  }
  if (!value.is_string() && !value.is_bool()) {
    fail(fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
  }
  if (spec.type != '\0' && spec.type != 's') {
    fail(fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  }
  if (spec.align == '=') {
    if (spec.fill != "0") fail("'=' alignment not allowed in string format specifier");
    spec.align = '<';
  }
  return format_text(to_str(value, interpreter.budget), spec);
}

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& interpreter, const Args& args)
      : interpreter_(interpreter), args_(args) {}

  std::string run(std::string_view text, int nesting = 0) {
    if (nesting > 2) fail("Max string recursion exceeded");
    TextBuilder out(interpreter_.budget);
    while (!text.empty()) {
      const size_t brace = std::min(text.find_first_of("{}"), text.size());
      out.append(text.substr(0, brace));
      text.remove_prefix(brace);
      if (text.empty()) break;
      if (text.size() > 1 && text[1] == text[0]) {
        out.append(text.substr(0, 1));
        text.remove_prefix(2);
        continue;
      }
      if (text[0] == '}') fail("Single '}' encountered in format string");
      const size_t end = field_end(text);
      out.append(field(text.substr(1, end - 1), nesting));
      text.remove_prefix(end + 1);
    }
    return out.take();
  }

 private:
  static size_t field_end(std::string_view text) {
    int open = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{') ++open;
      if (text[i] == '}' && --open == 0) return i;
    }
    fail("expected '}' before end of string");
  }

  Value lookup(std::string_view path);
  Value first_value(std::string_view name);
  std::string field(std::string_view text, int nesting);

  Interpreter& interpreter_;
  const Args& args_;
  int64_t next_ = 0;
  enum { kNone, kCounted, kNumbered } numbering_ = kNone;
};

Value BraceFormatter::first_value(std::string_view name) {
  const bool is_number = name.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number) {
    for (const auto& [key, value] : args_.keyword) {
      if (key == name) return value;
    }
    fail(fmt::format("'{}'", name));
  }
  const auto wanted = name.empty() ? kCounted : kNumbered;
  if (numbering_ != kNone && numbering_ != wanted) {
    fail("cannot switch between manual field specification and automatic field numbering");
  }
  numbering_ = wanted;
  const int64_t idx = name.empty() ? next_++ : read_count(name);
  if (idx >= static_cast<int64_t>(args_.positional.size())) {
    fail(fmt::format("Replacement index {} out of range for positional args tuple", idx));
  }
  return args_.positional[static_cast<size_t>(idx)];
}

Value BraceFormatter::lookup(std::string_view path) {
  const size_t name_end = std::min(path.find_first_of(".["), path.size());
  Value value = first_value(path.substr(0, name_end));
  path.remove_prefix(name_end);
  while (!path.empty()) {
    interpreter_.budget.step();
    if (path[0] == '[') {
      const size_t end = path.find(']');
      if (end == std::string_view::npos) fail("Missing ']' in format string");
      std::string_view key = path.substr(1, end - 1);
      path.remove_prefix(end + 1);
      if (key.empty()) fail("Empty attribute in format string");
      const bool is_number = key.find_first_not_of("0123456789") == std::string_view::npos;
      value = get_item(
          interpreter_, value,
          is_number ? Value::integer(read_count(key)) : interpreter_.make_string(std::string(key)));
    } else if (path[0] == '.') {
      const size_t end = std::min(path.find_first_of(".[", 1), path.size());
      if (end == 1) fail("Empty attribute in format string");
      value = get_attribute(interpreter_, value, path.substr(1, end - 1));
      path.remove_prefix(end);
    } else {
      fail("Only '.' or '[' may follow ']' in format field specifier");
    }
  }
  return value;
}

std::string BraceFormatter::field(std::string_view text, int nesting) {
  // A colon or an exclamation mark inside brackets belongs to the path.
  size_t path_end = 0;
  for (bool in_brackets = false; path_end < text.size(); ++path_end) {
    const char c = text[path_end];
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    if (!in_brackets && (c == ':' || c == '!')) break;
  }
  Value value = lookup(text.substr(0, path_end));
  text.remove_prefix(path_end);
  if (text.starts_with('!')) {
    const char conversion = text.size() > 1 ? text[1] : '\0';
    if (conversion == 'r' || conversion == 'a') {
      value = interpreter_.make_string(to_repr(value, interpreter_.budget));
    } else if (conversion == 's') {
      value = interpreter_.make_string(to_str(value, interpreter_.budget));
    } else {
      fail("Unknown conversion specifier");
    }
    text.remove_prefix(2);
    if (!text.empty() && text[0] != ':') fail("expected ':' after conversion specifier");
  }
  if (!text.empty()) text.remove_prefix(1);
  return format_value(interpreter_, value, run(text, nesting + 1));
}

}  // namespace

std::string format_percent(Interpreter& interpreter, std::string_view format, const Value& args) {
  return PercentFormatter(interpreter, format, args).run();
}

std::string format_braces(Interpreter& interpreter, std::string_view format, const Args& args) {
  return BraceFormatter(interpreter, args).run(format);
}

}  // namespace quire::jinja
