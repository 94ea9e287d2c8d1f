// Access to values: attributes, items, slices and iteration.
#include <fmt/format.h>

#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

struct BoundMethod : Object {
  BoundMethod(Value the_self, const Builtin& the_method)
      : self(std::move(the_self)), method(the_method) {
    depth = self.depth() + 1;
  }
  std::string type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Args args) override {
    return call_method(interpreter, method, self, args);
  }

  Value self;
  const Builtin& method;
};

// Whether the method changes a list or dict. Jinja's immutable sandbox denies access to such
// methods.
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
    return interpreter.make_object(std::make_shared<BoundMethod>(base, *method));
  }
  return std::nullopt;
}

Value text_at(Interpreter& interpreter, const Text& text, size_t start, size_t count) {
  const std::string_view all = text.utf8;
  if (text.ascii())
    return interpreter.make_string(std::string(all.substr(start, count)), text.markup);
  interpreter.budget.read(all.size());
  const size_t begin = byte_of_char(all, start);
  const size_t size = byte_of_char(all.substr(begin), count);
  return interpreter.make_string(std::string(all.substr(begin, size)), text.markup);
}

// base[key], without falling back to attributes; nullopt: no such item.
std::optional<Value> python_item(Interpreter& interpreter, const Value& base, const Value& key) {
  if (base.is_dict()) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* value = base.dict()->find(key, &interpreter.budget);
    return value == nullptr ? std::nullopt : std::optional<Value>(*value);
  }
  if (base.is_object()) return base.object()->item(key, interpreter.budget);
  if (!key.is_integral() || !(base.is_sequence() || base.is_string())) return std::nullopt;
  const int64_t length = *length_of(interpreter, base);
  const int64_t idx = key.as_int() < 0 ? key.as_int() + length : key.as_int();
  if (idx < 0 || idx >= length) return std::nullopt;
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
  if (bounds.count == 0) return interpreter.make_string("");
  const size_t start = static_cast<size_t>(bounds.start);
  if (bounds.step == 1) {
    return text_at(interpreter, text, start, static_cast<size_t>(bounds.count));
  }
  interpreter.budget.want((text.num_chars + static_cast<size_t>(bounds.count)) * sizeof(char32_t));
  interpreter.budget.read(text.utf8.size());
  const std::u32string chars = to_code_points(text.utf8);
  std::u32string picked;
  for (int64_t i = 0; i < bounds.count; ++i) {
    picked += chars[static_cast<size_t>(bounds.start + i * bounds.step)];
  }
  return interpreter.make_string(from_code_points(picked), text.markup);
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
                                                shortened(to_repr(key, interpreter.budget))));
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
  const int64_t length = *length_of(interpreter, base);
  const SliceBounds bounds = slice_bounds(start, stop, step, length);
  if (base.is_string()) return slice_text(interpreter, *base.text(), bounds);
  interpreter.budget.want(static_cast<size_t>(bounds.count) * sizeof(Value));
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
    interpreter.budget.want(items.size() * sizeof(Value));
    return items;
  }
  const auto num_items = static_cast<size_t>(*length_of(interpreter, value));
  interpreter.budget.step(num_items);
  interpreter.budget.want(num_items * sizeof(Value));
  if (value.is_sequence()) return value.items();
  items.reserve(num_items);
  if (value.is_dict()) {
    for (const auto& [key, unused] : value.dict()->entries()) items.push_back(key);
  } else if (value.is_string()) {
    for (const auto& [unused, bytes] : Chars(value.as_string())) {
      items.push_back(interpreter.make_string(std::string(bytes)));
    }
  }
  return items;
}

std::optional<int64_t> length_of(Interpreter& interpreter, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 0;
    case Value::Kind::kString:
      return static_cast<int64_t>(value.text()->num_chars);
    case Value::Kind::kSequence:
      return static_cast<int64_t>(value.items().size());
    case Value::Kind::kDict:
      return static_cast<int64_t>(value.dict()->entries().size());
    case Value::Kind::kObject:
      return value.object()->length(interpreter.budget);
    default:
      return std::nullopt;
  }
}

}  // namespace quire::jinja
