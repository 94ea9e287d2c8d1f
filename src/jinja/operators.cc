// Python's operators.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"
#include "jinja/write_escaped.h"

namespace quire::jinja {

namespace {

[[noreturn]] void fail_overflow() {
  fail("an integer is beyond 64 bits");
}

std::string_view symbol(BinaryOp op) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSymbols[static_cast<size_t>(op)];
}

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
}

Value int_op(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::kSub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::kMul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
      if (b == 0) fail("integer division or modulo by zero");
      if (b == -1) {  // the only divisor whose quotient can overflow
        if (op == BinaryOp::kMod) return Value::integer(0);
        overflow = __builtin_sub_overflow(int64_t{0}, a, &result);
      } else {
        const int64_t quotient = floor_div(a, b);
        result = op == BinaryOp::kMod ? a - quotient * b : quotient;
      }
      break;
    case BinaryOp::kPow:
      result = power(a, b);
      break;
    case BinaryOp::kDiv:
      break;  // always a float division, below
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

double float_mod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// As in CPython, so that results round equally.
double float_floor_div(double a, double b) {
  const double quotient = (a - float_mod(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) fail("the result is a complex number");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    fail("(34, 'Numerical result out of range')");
  }
  return result;
}

Value number_op(BinaryOp op, const Value& left, const Value& right) {
  const bool ints = left.is_integral() && right.is_integral();
  if (ints && op != BinaryOp::kDiv && !(op == BinaryOp::kPow && right.as_int() < 0)) {
    return int_op(op, left.as_int(), right.as_int());
  }
  const double a = left.as_float();
  const double b = right.as_float();
  switch (op) {
    case BinaryOp::kAdd:
      return Value::real(a + b);
    case BinaryOp::kSub:
      return Value::real(a - b);
    case BinaryOp::kMul:
      return Value::real(a * b);
    case BinaryOp::kPow:
      return Value::real(float_power(a, b));
    default:
      break;
  }
  if (b == 0) fail(op == BinaryOp::kMod ? "float modulo" : "division by zero");
  if (op == BinaryOp::kDiv) return Value::real(a / b);
  return Value::real(op == BinaryOp::kMod ? float_mod(a, b) : float_floor_div(a, b));
}

Value concat_text(Interpreter& interpreter, const Text& left, const Text& right) {
  if (left.markup == right.markup) {
    interpreter.budget.want(left.utf8.size() + right.utf8.size());
    return interpreter.make_string(left.utf8 + right.utf8, left.markup);
  }
  TextBuilder out(interpreter.budget);
  for (const Text* text : {&left, &right}) {
    if (text->markup) {
      out.append(text->utf8);
    } else {
      write_html_escaped(text->utf8, out);
    }
  }
  return interpreter.make_string(out.take(), true);
}

Value concat_sequences(Interpreter& interpreter, const Sequence& left, const Sequence& right) {
  interpreter.budget.want((left.items.size() + right.items.size()) * sizeof(Value));
  std::vector<Value> items;
  items.reserve(left.items.size() + right.items.size());
  items.insert(items.end(), left.items.begin(), left.items.end());
  items.insert(items.end(), right.items.begin(), right.items.end());
  return interpreter.make_list(std::move(items), left.type == Sequence::Type::kList
                                                     ? Sequence::Type::kList
                                                     : Sequence::Type::kTuple);
}

Value repeat(Interpreter& interpreter, const Value& value, int64_t times) {
  const size_t count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const bool is_text = value.is_string();
  const size_t size = is_text ? value.as_string().size() : value.items().size() * sizeof(Value);
  size_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) total = SIZE_MAX;
  interpreter.budget.want(total);
  if (is_text) {
    interpreter.budget.read(total);
    std::string text;
    text.reserve(total);
    for (size_t i = 0; size > 0 && i < count; ++i) text += value.as_string();
    return interpreter.make_string(std::move(text), value.text()->markup);
  }
  std::vector<Value> items;
  items.reserve(total / sizeof(Value));
  for (size_t i = 0; size > 0 && i < count; ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return interpreter.make_list(std::move(items), value.sequence()->type);
}

}  // namespace

void write_html_escaped(std::string_view text, TextBuilder& out) {
  write_escaped(text, out, [](char32_t c, std::string_view) -> std::string {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&#34;";
      case '\'':
        return "&#39;";
      default:
        return {};
    }
  });
}

Value apply_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return number_op(op, left, right);
  if (op == BinaryOp::kMod && left.is_string()) {
    return interpreter.make_string(format_percent(interpreter, left.as_string(), right),
                                   left.text()->markup);
  }
  if (left.is_undefined()) fail(left.undefined_reason());
  if (right.is_undefined()) fail(right.undefined_reason());
  if (op == BinaryOp::kAdd) {
    if (left.is_string() && right.is_string()) {
      return concat_text(interpreter, *left.text(), *right.text());
    }
    if (left.is_sequence() && right.is_sequence() && left.is_list() == right.is_list()) {
      return concat_sequences(interpreter, *left.sequence(), *right.sequence());
    }
    if (left.is_string() || left.is_sequence()) {
      const std::string name = left.type_name();
      fail(
          fmt::format("can only concatenate {} (not \"{}\") to {}", name, right.type_name(), name));
    }
  }
  if (op == BinaryOp::kMul) {
    const auto repeats = [](const Value& v) { return v.is_string() || v.is_sequence(); };
    if (repeats(left) && right.is_integral()) return repeat(interpreter, left, right.as_int());
    if (repeats(right) && left.is_integral()) return repeat(interpreter, right, left.as_int());
    if (repeats(left) || repeats(right)) {
      fail(fmt::format("can't multiply sequence by non-int of type '{}'",
                       (repeats(left) ? right : left).type_name()));
    }
  }
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op),
                   left.type_name(), right.type_name()));
}

Value negate(const Value& operand, bool minus) {
  if (operand.is_undefined()) fail(operand.undefined_reason());
  if (operand.is_float()) return Value::real(minus ? -operand.as_float() : operand.as_float());
  if (!operand.is_integral()) {
    fail(
        fmt::format("bad operand type for unary {}: '{}'", minus ? "-" : "+", operand.type_name()));
  }
  int64_t result = operand.as_int();
  if (minus && __builtin_sub_overflow(int64_t{0}, result, &result)) fail_overflow();
  return Value::integer(result);
}

bool contains(Interpreter& interpreter, const Value& container, const Value& item) {
  Budget& budget = interpreter.budget;
  if (container.is_dict()) return container.dict()->find(item, &budget) != nullptr;
  if (container.is_string()) {
    if (!item.is_string()) {
      fail(fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    budget.read(container.as_string().size());
    budget.read(item.as_string().size());
    return find_text(container.as_string(), item.as_string()) != std::string_view::npos;
  }
  if (!is_iterable(container)) {
    fail(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  }
  const auto has = [&](const std::vector<Value>& items) {
    for (const Value& present : items) {
      if (identical(present, item) || equal(present, item, &budget)) return true;
    }
    return false;
  };
  return container.is_sequence() ? has(container.items()) : has(to_items(interpreter, container));
}

bool compare(Interpreter& interpreter, CompareOp op, const Value& left, const Value& right) {
  Budget& budget = interpreter.budget;
  switch (op) {
    case CompareOp::kEq:
      return equal(left, right, &budget);
    case CompareOp::kNe:
      return !equal(left, right, &budget);
    case CompareOp::kLt:
      return less(left, right, budget);
    case CompareOp::kLe:
      return less(left, right, budget, "<=") || equal(left, right, &budget);
    case CompareOp::kGt:
      return less(right, left, budget, ">");
    case CompareOp::kGe:
      return less(right, left, budget, ">=") || equal(left, right, &budget);
    case CompareOp::kIn:
      return contains(interpreter, right, left);
    case CompareOp::kNotIn:
      break;
  }
  return !contains(interpreter, right, left);
}

}  // namespace quire::jinja
