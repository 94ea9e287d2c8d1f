// Python's operations on values: attributes, items, slices, iteration and operators.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/python_text.h"

namespace quire::jinja {

// ---- attributes, items and slices

namespace {

// Returns whether the method changes a list or dict. Jinja's immutable sandbox denies access to
// such methods.
bool changes_its_object(const Value& base, std::string_view name) {
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (base.is_dict()) return one_of({"clear", "pop", "popitem", "setdefault", "update"});
  return base.is_list() &&
         one_of({"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
}

std::string owner_name(const Value& base) {
  return base.is_none() ? "None" : base.type_name() + " object";
}

// Python's getattr within the limits of the sandbox; nullopt: no such attribute.
std::optional<Value> python_attribute(Interpreter& interpreter, const Value& base,
                                      std::string_view name) {
  interpreter.budget.read(name.size());
  if (base.is_object()) return base.object()->attribute(interpreter, name);
  if (changes_its_object(base, name)) {
    return interpreter.make_undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, base.type_name()));
  }
  if (base.is_sequence() && base.sequence()->type == Sequence::Type::kGroup) {
    if (name == "grouper") return base.items()[0];
    if (name == "list") return base.items()[1];
  }
  if (const Builtin* method = find_method(base, name)) {
    return interpreter.make_method(base, *method);
  }
  return std::nullopt;
}

Value text_at(Interpreter& interpreter, const Text& text, size_t start, size_t count) {
  const std::string_view all = text.text;
  if (text.ascii()) {
    return interpreter.make_string(copy_part(text, all.substr(start, count)), text.markup);
  }
  interpreter.budget.read(all.size());
  const size_t begin = byte_of_char(all, start);
  const size_t size = byte_of_char(all.substr(begin), count);
  return interpreter.make_string(copy_part(text, all.substr(begin, size)), text.markup);
}

// base[key], without falling back to attributes; nullopt: no such item.
std::optional<Value> python_item(Interpreter& interpreter, const Value& base, const Value& key) {
  if (base.is_dict()) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* value = base.dict()->find(key, &interpreter.budget);
    return value == nullptr ? std::nullopt : std::optional<Value>(*value);
  }
  const auto* range = base.object_as<Range>();
  if (!key.is_integral() || !(base.is_sequence() || base.is_string() || range != nullptr)) {
    return std::nullopt;
  }
  const int64_t length = *length_of(base);
  const int64_t idx = key.as_int() < 0 ? key.as_int() + length : key.as_int();
  if (idx < 0 || idx >= length) return std::nullopt;
  if (range != nullptr) return Value::integer(range->at(idx));
  if (base.is_sequence()) return base.items()[static_cast<size_t>(idx)];
  return text_at(interpreter, *base.text(), static_cast<size_t>(idx), 1);
}

struct SliceBounds {
  int64_t start = 0, step = 1, count = 0;
};

std::optional<int64_t> slice_index(const Value& value) {
  if (value.is_none()) return std::nullopt;
  if (value.is_integral()) return value.as_int();
  if (value.is_undefined()) fail(value.undefined_reason());
  fail("slice indices must be integers or None or have an __index__ method");
}

SliceBounds slice_bounds(const Value& start_value, const Value& stop_value, const Value& step_value,
                         int64_t length) {
  SliceBounds bounds;
  bounds.step = std::max(slice_index(step_value).value_or(1), -INT64_MAX);
  if (bounds.step == 0) fail("slice step cannot be zero");
  const bool forward = bounds.step > 0;
  const auto clamp = [&](std::optional<int64_t> idx, int64_t otherwise) {
    if (!idx) return otherwise;
    if (*idx < 0) *idx += length;
    return forward ? std::clamp<int64_t>(*idx, 0, length)
                   : std::clamp<int64_t>(*idx, -1, length - 1);
  };
  bounds.start = clamp(slice_index(start_value), forward ? 0 : length - 1);
  const int64_t stop = clamp(slice_index(stop_value), forward ? length : -1);
  const int64_t distance = forward ? stop - bounds.start : bounds.start - stop;
  const int64_t stride = forward ? bounds.step : -bounds.step;
  bounds.count = distance > 0 ? (distance - 1) / stride + 1 : 0;
  return bounds;
}

Value slice_text(Interpreter& interpreter, const Text& text, const SliceBounds& bounds) {
  if (bounds.count == 0) return interpreter.make_literal("");
  const size_t start = static_cast<size_t>(bounds.start);
  if (bounds.step == 1) {
    return text_at(interpreter, text, start, static_cast<size_t>(bounds.count));
  }
  interpreter.budget.require_free((text.num_chars + static_cast<size_t>(bounds.count)) *
                                  sizeof(char32_t));
  interpreter.budget.read(text.text.size());
  const std::u32string chars = to_code_points(text.text);
  std::u32string picked;
  for (int64_t i = 0; i < bounds.count; ++i) {
    picked += chars[static_cast<size_t>(bounds.start + i * bounds.step)];
  }
  return interpreter.make_string(derived(text, from_code_points(picked)), text.markup);
}

}  // namespace

Value get_attribute(Interpreter& interpreter, const Value& base, std::string_view name) {
  if (base.is_undefined()) fail(base.undefined_reason());
  if (std::optional<Value> value = python_attribute(interpreter, base, name)) return *value;
  if (base.is_dict()) {
    if (const Value* value = base.dict()->find(name, interpreter.budget)) return *value;
  }
  return interpreter.make_undefined(
      fmt::format("'{}' has no attribute '{}'", owner_name(base), shortened(name)));
}

Value get_item(Interpreter& interpreter, const Value& base, const Value& key) {
  if (base.is_undefined()) fail(base.undefined_reason());
  if (std::optional<Value> value = python_item(interpreter, base, key)) return *value;
  if (key.is_string()) {
    if (auto value = python_attribute(interpreter, base, key.as_string())) return *value;
    return interpreter.make_undefined(
        fmt::format("'{}' has no attribute '{}'", owner_name(base), shortened(key.as_string())));
  }
  return interpreter.make_undefined(fmt::format("{} has no element {}", owner_name(base),
                                                shortened(to_repr(key, interpreter.budget).text)));
}

Value get_slice(Interpreter& interpreter, const Value& base, const Value& start, const Value& stop,
                const Value& step) {
  if (base.is_undefined()) fail(base.undefined_reason());
  if (const auto* range = base.object_as<Range>()) {
    const SliceBounds bounds = slice_bounds(start, stop, step, range->size());
    const int64_t first = range->at(bounds.start);
    int64_t stride = 0;
    if (__builtin_mul_overflow(range->step, bounds.step, &stride)) stride = range->step;
    const int64_t end = bounds.count == 0 ? first : first + bounds.count * stride;
    return interpreter.make_object(std::make_shared<Range>(first, end, stride));
  }
  if (!base.is_string() && !base.is_sequence()) {
    fail(base.is_dict() ? "unhashable type: 'slice'"
                        : fmt::format("'{}' object is not subscriptable", base.type_name()));
  }
  const int64_t length = *length_of(base);
  const SliceBounds bounds = slice_bounds(start, stop, step, length);
  if (base.is_string()) return slice_text(interpreter, *base.text(), bounds);
  interpreter.budget.require_free(static_cast<size_t>(bounds.count) * sizeof(Value));
  std::vector<Value> picked;
  picked.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) {
    picked.push_back(base.items()[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return interpreter.make_list(std::move(picked),
                               base.is_list() ? Sequence::Type::kList : Sequence::Type::kTuple);
}

bool is_iterable(const Value& value) {
  if (const auto* object = value.is_object() ? value.object().get() : nullptr) {
    return dynamic_cast<const DictView*>(object) != nullptr ||
           dynamic_cast<const Range*>(object) != nullptr ||
           dynamic_cast<const Iterator*>(object) != nullptr;
  }
  return value.is_undefined() || value.is_string() || value.is_sequence() || value.is_dict();
}

std::vector<Value> to_items(Interpreter& interpreter, const Value& value) {
  if (!is_iterable(value)) fail(fmt::format("'{}' object is not iterable", value.type_name()));
  std::vector<Value> items;
  if (value.is_object()) {
    items = *value.object()->iterate(interpreter);
    interpreter.budget.step(items.size());
    interpreter.budget.require_free(items.size() * sizeof(Value));
    return items;
  }
  const auto num_items = static_cast<size_t>(*length_of(value));
  interpreter.budget.step(num_items);
  interpreter.budget.require_free(num_items * sizeof(Value));
  if (value.is_sequence()) return value.items();
  items.reserve(num_items);
  if (value.is_dict()) {
    for (const auto& [key, unused] : value.dict()->entries()) items.push_back(key);
  } else if (value.is_string()) {
    for (const auto& [unused, bytes] : Chars(value.as_string())) {
      items.push_back(interpreter.make_string(copy_part(*value.text(), bytes)));
    }
  }
  return items;
}

std::optional<int64_t> length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return static_cast<int64_t>(value.text()->num_chars);
  if (value.is_sequence()) return static_cast<int64_t>(value.items().size());
  if (value.is_dict()) return static_cast<int64_t>(value.dict()->entries().size());
  return value.is_object() ? value.object()->length() : std::nullopt;
}

// ---- operators

namespace {

[[noreturn]] void fail_overflow() {
  fail("an integer is beyond 64 bits");
}

std::string_view symbol(BinaryOp op) {
  constexpr std::string_view kSymbols[] = {"+", "-",           "*",   "/", "//",
                                           "%", "** or pow()", "and", "or"};
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
  if (op == BinaryOp::kPow) return Value::integer(power(a, b));
  if (op == BinaryOp::kAdd) overflow = __builtin_add_overflow(a, b, &result);
  if (op == BinaryOp::kSub) overflow = __builtin_sub_overflow(a, b, &result);
  if (op == BinaryOp::kMul) overflow = __builtin_mul_overflow(a, b, &result);
  if (op == BinaryOp::kFloorDiv || op == BinaryOp::kMod) {
    if (b == 0) fail("integer division or modulo by zero");
    if (b == -1) {  // the only divisor whose quotient can overflow
      overflow = op == BinaryOp::kFloorDiv && __builtin_sub_overflow(int64_t{0}, a, &result);
    } else {
      const int64_t quotient = floor_div(a, b);
      result = op == BinaryOp::kMod ? a - quotient * b : quotient;
    }
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

double float_mod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Computes the quotient in CPython's steps, so that results round equally.
double float_floor_div(double a, double b) {
  const double quotient = (a - float_mod(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double float_power(double a, double b) {
  const double result = std::pow(a, b);
  if (!std::isfinite(result) && std::isfinite(a) && std::isfinite(b)) {
    fail(fmt::format("{} ** {} is no finite real number", a, b));
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
  if (op == BinaryOp::kAdd) return Value::real(a + b);
  if (op == BinaryOp::kSub) return Value::real(a - b);
  if (op == BinaryOp::kMul) return Value::real(a * b);
  if (op == BinaryOp::kPow) return Value::real(float_power(a, b));
  if (b == 0) fail(op == BinaryOp::kMod ? "float modulo" : "division by zero");
  if (op == BinaryOp::kDiv) return Value::real(a / b);
  return Value::real(op == BinaryOp::kMod ? float_mod(a, b) : float_floor_div(a, b));
}

// As in jinja2, a text that is joined to the result of |safe or |escape is escaped.
Value concat_text(Interpreter& interpreter, const Text& left, const Text& right) {
  if (left.markup != right.markup) {
    TextBuilder escaped(interpreter.budget);
    for (const Text* const part : {&left, &right}) {
      part->markup ? escaped.append(*part) : write_html_escaped(*part, escaped);
    }
    return interpreter.make_string(escaped.take(), true);
  }
  interpreter.budget.require_free(left.text.size() + right.text.size());
  MarkedText joined;
  joined.text.reserve(left.text.size() + right.text.size());
  joined.append(left);
  joined.append(right);
  return interpreter.make_string(std::move(joined), left.markup);
}

Value concat_sequences(Interpreter& interpreter, const Sequence& left, const Sequence& right) {
  interpreter.budget.require_free((left.items.size() + right.items.size()) * sizeof(Value));
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
  interpreter.budget.require_free(total);
  if (is_text) {
    TextBuilder out(interpreter.budget);
    if (size > 0) out.append_times(count, *value.text());
    return interpreter.make_string(out.take(), value.text()->markup);
  }
  std::vector<Value> items;
  items.reserve(total / sizeof(Value));
  for (size_t i = 0; size > 0 && i < count; ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return interpreter.make_list(std::move(items), value.sequence()->type);
}

}  // namespace

Value apply_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return number_op(op, left, right);
  if (op == BinaryOp::kMod && left.is_string()) {
    const bool is_markup = left.text()->markup;
    return interpreter.make_string(format_percent(interpreter, *left.text(), right, is_markup),
                                   is_markup);
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
      if (present.is_same(item) || equal(present, item, &budget)) return true;
    }
    return false;
  };
  return container.is_sequence() ? has(container.items()) : has(to_items(interpreter, container));
}

bool compare(Interpreter& interpreter, CompareOp op, const Value& left, const Value& right) {
  if (op == CompareOp::kEq || op == CompareOp::kNe) {
    return equal(left, right, &interpreter.budget) == (op == CompareOp::kEq);
  }
  if (op == CompareOp::kIn || op == CompareOp::kNotIn) {
    return contains(interpreter, right, left) == (op == CompareOp::kIn);
  }
  const bool or_equal = op == CompareOp::kLe || op == CompareOp::kGe;
  const bool holds = op == CompareOp::kLt || op == CompareOp::kLe
                         ? less(left, right, interpreter.budget, or_equal ? "<=" : "<")
                         : less(right, left, interpreter.budget, or_equal ? ">=" : ">");
  return holds || (or_equal && equal(left, right, &interpreter.budget));
}

}  // namespace quire::jinja
