// Implements str.format: "{:>8}".format(x).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "jinja/format_spec.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
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

void write_value(const Value& value, std::string_view text, TextBuilder& out) {
  if (text.empty()) return write_str(value, out);
  FormatSpec spec = parse_spec(text);
  const bool wants_float = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (spec.type != '\0' && wants_float && value.is_number()) {
    if (spec.precision > kMaxPrecision) fail("a precision is too large");
    return write_float(value.as_float(), spec, out);
  }
  if (value.is_float()) {
    if (spec.type != '\0') fail(fmt::format("Unknown format code '{}' for a float", spec.type));
    if (spec.precision > kMaxPrecision) fail("a precision is too large");
    return write_float(value.as_float(), spec, out);
  }
  if (value.is_int() || (value.is_bool() && spec.type != '\0')) {
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (spec.type == 's') fail("Unknown format code 's' for object of type 'int'");
    return write_integer(value.as_int(), spec, out);
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
  write_text(to_str(value, out.budget()), spec, out);
}

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& interpreter, const Args& args)
      : interpreter_(interpreter), args_(args) {}

  std::string run(std::string_view text, int nesting = 0) {
    if (nesting > 2) fail("Max string recursion exceeded");
    TextBuilder out(interpreter_.budget);
    interpreter_.budget.read(text.size());
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
      write_field(text.substr(1, end - 1), nesting, out);
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
  void write_field(std::string_view text, int nesting, TextBuilder& out);

  Interpreter& interpreter_;
  const Args& args_;
  int64_t next_ = 0;
  enum { kNone, kCounted, kNumbered } numbering_ = kNone;
};

Value BraceFormatter::first_value(std::string_view name) {
  const bool is_number = name.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number) {
    const std::optional<size_t> idx = find_named(args_.keyword, name, interpreter_.budget);
    if (!idx) fail(fmt::format("'{}'", name));
    return args_.keyword[*idx].second;
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

void BraceFormatter::write_field(std::string_view text, int nesting, TextBuilder& out) {
  interpreter_.budget.step();
  // Inside brackets, a colon or an exclamation mark is a part of the path.
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
  write_value(value, run(text, nesting + 1), out);
}

}  // namespace

std::string format_braces(Interpreter& interpreter, std::string_view format, const Args& args) {
  return BraceFormatter(interpreter, args).run(format);
}

}  // namespace quire::jinja
