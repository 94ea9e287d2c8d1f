// Implements %-formatting: "%05.1f" % x.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "jinja/format_spec.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

class PercentFormatter {
 public:
  PercentFormatter(Interpreter& interpreter, std::string_view format, const Value& args)
      : interpreter_(interpreter), rest_(format), args_(args), out_(interpreter.budget) {}

  std::string run() {
    interpreter_.budget.read(rest_.size());
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
  void flags(FormatSpec& spec);
  int64_t count_or_star() {
    if (!rest_.starts_with('*')) return read_count(rest_);
    rest_.remove_prefix(1);
    const Value& count = next_arg();
    if (!count.is_integral()) fail("* wants int");
    return std::clamp<int64_t>(count.as_int(), -kMaxWidth, kMaxWidth);
  }
  void write_number(const Value& value, const FormatSpec& spec);

  Interpreter& interpreter_;
  std::string_view rest_;
  const Value& args_;
  TextBuilder out_;
  size_t next_ = 0;
  bool used_key_ = false;
};

void PercentFormatter::flags(FormatSpec& spec) {
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

void PercentFormatter::write_number(const Value& value, const FormatSpec& spec) {
  if (value.is_undefined()) fail(value.undefined_reason());
  if (!value.is_number()) {
    fail(
        fmt::format("%{} format: a real number is required, not {}", spec.type, value.type_name()));
  }
  if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
    return write_float(value.as_float(), spec, out_);
  }
  if (value.is_integral()) return write_integer(value.as_int(), spec, out_);
  if (spec.type != 'd' && spec.type != 'i' && spec.type != 'u') {
    fail(fmt::format("%{} format: an integer is required, not float", spec.type));
  }
  if (!(std::fabs(value.as_float()) < 9223372036854775808.0)) {
    fail("an integer is beyond 64 bits");
  }
  write_integer(static_cast<int64_t>(value.as_float()), spec, out_);
}

Value PercentFormatter::argument() {
  if (!rest_.starts_with('(')) return Value::undefined();
  const size_t end = rest_.find(')');
  if (end == std::string_view::npos) fail("incomplete format key");
  if (!args_.is_dict()) fail("format requires a mapping");
  const std::string key(rest_.substr(1, end - 1));
  rest_.remove_prefix(end + 1);
  used_key_ = true;
  const Value* value = args_.dict()->find(key, interpreter_.budget);
  if (value == nullptr) fail(fmt::format("'{}'", key));
  return *value;
}

void PercentFormatter::directive() {
  interpreter_.budget.step();
  rest_.remove_prefix(1);
  const bool keyed = rest_.starts_with('(');
  const Value by_key = argument();
  FormatSpec spec;
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
    return write_text(text, spec, out_);
  }
  if (std::string_view("diouxXeEfFgG").find(spec.type) == std::string_view::npos) {
    fail(fmt::format("unsupported format character '{}'", spec.type));
  }
  if (spec.precision > kMaxPrecision) fail("a precision is too large");
  write_number(value, spec);
}

}  // namespace

std::string format_percent(Interpreter& interpreter, std::string_view format, const Value& args) {
  return PercentFormatter(interpreter, format, args).run();
}

}  // namespace quire::jinja
