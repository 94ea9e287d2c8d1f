// Filters of sequences and of numbers. Filters that yield items one by one behave like generators.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/python_text.h"

namespace quire::jinja {

Value attribute_path(Interpreter& interpreter, const Value& item, const Value& path,
                     const Value* otherwise) {
  if (path.is_none()) return item;
  Value value = item;
  const auto enter = [&](const Value& part) {
    value = get_item(interpreter, value, part);
    if (otherwise != nullptr && !otherwise->is_none() && value.is_undefined()) value = *otherwise;
  };
  if (!path.is_string()) {
    enter(path);
    return value;
  }
  std::string_view rest = path.as_string();
  while (true) {
    const size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    interpreter.budget.step();
    const bool is_number = !part.empty() && part.size() < 19 &&
                           part.find_first_not_of("0123456789") == std::string_view::npos;
    enter(is_number ? Value::integer(std::stoll(std::string(part)))
                    : interpreter.make_string(copy_part(*path.text(), part)));
    if (end == rest.size()) return value;
    rest.remove_prefix(end + 1);
  }
}

namespace {

Value ignore_case(Interpreter& interpreter, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return interpreter.make_string(map_text(interpreter.budget, lower, *value.text()));
}

// The key by which an item is sorted, compared or grouped.
Value key_of(Interpreter& interpreter, const Value& item, const Value* attribute,
             bool case_sensitive, const Value* otherwise = nullptr) {
  const Value key =
      attribute == nullptr ? item : attribute_path(interpreter, item, *attribute, otherwise);
  return ignore_case(interpreter, key, case_sensitive);
}

struct Keyed {
  Value key, item;
};

// Python's sorted(): stable, also with `reverse`.
std::vector<Value> sorted(Interpreter& interpreter, std::vector<Keyed> pairs, bool reverse) {
  if (reverse) std::reverse(pairs.begin(), pairs.end());
  std::stable_sort(pairs.begin(), pairs.end(), [&](const Keyed& a, const Keyed& b) {
    return less(a.key, b.key, interpreter.budget);
  });
  if (reverse) std::reverse(pairs.begin(), pairs.end());
  std::vector<Value> items;
  for (Keyed& pair : pairs) items.push_back(std::move(pair.item));
  return items;
}

bool has_positions(const Value& value) {
  return value.is_string() || value.is_sequence();
}

// Item `idx` of a string or sequence, without copying the others. A character of markup is returned
// as plain text.
Value item_at(Interpreter& interpreter, const Value& self, int64_t idx) {
  const Value item = get_item(interpreter, self, Value::integer(idx));
  return self.is_string() ? interpreter.make_string(*item.text()) : item;
}

Value first(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  if (auto* iterator = self.object_as<Iterator>()) {
    if (std::optional<Value> item = iterator->next()) return *item;
  } else if (has_positions(self)) {
    if (truthy(self)) return item_at(interpreter, self, 0);
  } else {
    const std::vector<Value> items = to_items(interpreter, self);
    if (!items.empty()) return items[0];
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  if (self.object_as<Iterator>() != nullptr) fail("'generator' object is not reversible");
  if (self.is_undefined()) fail("'Undefined' object is not reversible");
  if (has_positions(self) && truthy(self)) return item_at(interpreter, self, -1);
  const std::vector<Value> items = to_items(interpreter, self);
  if (items.empty()) return Value::undefined("No last item, sequence was empty.");
  return items.back();
}

Value length(Interpreter&, const Value& self, const BoundArgs&) {
  const std::optional<int64_t> count = length_of(self);
  if (!count) fail(fmt::format("object of type '{}' has no len()", self.type_name()));
  return Value::integer(*count);
}

Value list(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  return interpreter.make_list(to_items(interpreter, self));
}

Value items(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  if (self.is_undefined()) return interpreter.make_iterator({});
  if (!self.is_dict()) fail("Can only get item pairs from a mapping.");
  return interpreter.make_iterator(
      *DictView(self.dict(), DictView::Part::kItems).iterate(interpreter));
}

Value reverse(Interpreter& interpreter, const Value& self, const BoundArgs&) {
  if (self.is_string()) {
    return get_slice(interpreter, self, Value(), Value(), Value::integer(-1));
  }
  if (!is_iterable(self)) fail("argument must be iterable");
  std::vector<Value> values = to_items(interpreter, self);
  std::reverse(values.begin(), values.end());
  // In Jinja, a generator is first converted into a list, so the result is a list.
  if (self.object_as<Iterator>() != nullptr) return interpreter.make_list(std::move(values));
  return interpreter.make_iterator(std::move(values));
}

Value sort(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const bool case_sensitive = args.flag(1);
  std::vector<Value> paths;
  if (args.has(2) && args.value(2).is_string()) {
    std::string_view rest = args.text(2);
    while (true) {
      const size_t end = std::min(rest.find(','), rest.size());
      paths.push_back(interpreter.make_string(copy_part(args.marked(2), rest.substr(0, end))));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  } else {
    paths.push_back(args.has(2) ? args.value(2) : Value());
  }
  std::vector<Keyed> pairs;
  for (const Value& item : to_items(interpreter, self)) {
    std::vector<Value> keys;
    for (const Value& path : paths) {
      keys.push_back(key_of(interpreter, item, &path, case_sensitive));
    }
    pairs.push_back({interpreter.make_list(std::move(keys)), item});
  }
  return interpreter.make_list(sorted(interpreter, std::move(pairs), args.flag(0)));
}

Value dictsort(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const std::string by = args[1] == nullptr ? "key" : args.text(1);
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (!self.is_dict()) {
    if (self.is_undefined()) fail(self.undefined_reason());
    fail(fmt::format("'{}' object has no attribute 'items'", self.type_name()));
  }
  std::vector<Keyed> pairs;
  for (const auto& [key, value] : self.dict()->entries()) {
    pairs.push_back({ignore_case(interpreter, by == "key" ? key : value, args.flag(0)),
                     interpreter.make_tuple({key, value})});
  }
  return interpreter.make_list(sorted(interpreter, std::move(pairs), args.flag(2)));
}

Value unique(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const auto before = [&](const Value& a, const Value& b) {
    return compare_keys(a, b, &interpreter.budget) < 0;
  };
  std::set<Value, decltype(before)> seen(before);
  std::vector<Value> kept;
  for (const Value& item : to_items(interpreter, self)) {
    const Value key = key_of(interpreter, item, args[1], args.flag(0));
    require_hashable(key);
    if (seen.insert(key).second) kept.push_back(item);
  }
  return interpreter.make_iterator(std::move(kept));
}

template <bool kMaximum>
Value extreme(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const std::vector<Value> values = to_items(interpreter, self);
  if (values.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  Value best_key = key_of(interpreter, values[0], args[1], args.flag(0));
  for (size_t i = 1; i < values.size(); ++i) {
    Value key = key_of(interpreter, values[i], args[1], args.flag(0));
    const bool is_better = kMaximum ? less(best_key, key, interpreter.budget)
                                    : less(key, best_key, interpreter.budget);
    if (!is_better) continue;
    best = i;
    best_key = std::move(key);
  }
  return values[best];
}

Value sum(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  Value total = args[1] == nullptr ? Value::integer(0) : args.value(1);
  if (total.is_string()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : to_items(interpreter, self)) {
    const Value part = args.has(0) ? attribute_path(interpreter, item, args.value(0)) : item;
    total = apply_binary(interpreter, BinaryOp::kAdd, total, part);
  }
  return total;
}

Value batch(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const int64_t size = args.integer(0);
  std::vector<Value> batches, current;
  for (const Value& item : to_items(interpreter, self)) {
    if (static_cast<int64_t>(current.size()) == size) {
      batches.push_back(interpreter.make_list(std::exchange(current, {})));
    }
    current.push_back(item);
  }
  if (!current.empty()) {
    if (args.has(1) && size > 0) {
      interpreter.budget.require_free(
          static_cast<size_t>(size) > SIZE_MAX / 64 ? SIZE_MAX : static_cast<size_t>(size) * 32);
      while (static_cast<int64_t>(current.size()) < size) current.push_back(args.value(1));
    }
    batches.push_back(interpreter.make_list(std::move(current)));
  }
  return interpreter.make_iterator(std::move(batches));
}

Value slice(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const std::vector<Value> values = to_items(interpreter, self);
  const int64_t count = args.integer(0);
  if (count == 0) fail("integer division or modulo by zero");
  std::vector<Value> slices;
  const int64_t size = static_cast<int64_t>(values.size());
  for (int64_t i = 0, start = 0; i < count; ++i) {
    const bool is_longer = i < size % count;
    const int64_t end = start + size / count + is_longer;
    std::vector<Value> part(values.begin() + start, values.begin() + end);
    if (args.has(1) && !is_longer) part.push_back(args.value(1));
    slices.push_back(interpreter.make_list(std::move(part)));
    start = end;
  }
  return interpreter.make_iterator(std::move(slices));
}

Value groupby(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const bool case_sensitive = args.flag(2);
  std::vector<Keyed> pairs;
  for (const Value& item : to_items(interpreter, self)) {
    pairs.push_back({key_of(interpreter, item, args[0], case_sensitive, args[1]), item});
  }
  std::vector<Value> groups, members;
  Value key;
  const auto close_group = [&] {
    if (members.empty()) return;
    const Value label =
        case_sensitive ? key : attribute_path(interpreter, members[0], args.value(0), args[1]);
    groups.push_back(interpreter.make_list(
        {label, interpreter.make_list(std::exchange(members, {}))}, Sequence::Type::kGroup));
  };
  for (const Value& item : sorted(interpreter, std::move(pairs), false)) {
    const Value item_key = key_of(interpreter, item, args[0], case_sensitive, args[1]);
    if (!members.empty() && !equal(key, item_key, &interpreter.budget)) close_group();
    key = item_key;
    members.push_back(item);
  }
  close_group();
  return interpreter.make_list(std::move(groups));
}

Value attr(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (self.is_undefined()) fail(self.undefined_reason());
  const std::string& name = args.text(0);
  // Unlike a.b, this filter does not fall back to a['b'].
  if (self.is_dict() && find_method(self, name) == nullptr) {
    return interpreter.make_undefined(
        fmt::format("'dict object' has no attribute '{}'", shortened(name)));
  }
  return get_attribute(interpreter, self, name);
}

Value default_value(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (!self.is_undefined() && !(args.flag(1) && !truthy(self))) return self;
  return args[0] == nullptr ? interpreter.make_literal("") : args.value(0);
}

// ---- map, select, reject and their attribute forms

Args without_first(const Args& args) {
  return {std::vector<Value>(args.positional.begin() + 1, args.positional.end()), args.keyword};
}

const Builtin& named(const Value& name, const Builtin* (*find)(std::string_view),
                     std::string_view kind, Budget& budget) {
  if (name.is_string()) budget.read(name.as_string().size());
  const Builtin* found = name.is_string() ? find(name.as_string()) : nullptr;
  if (found != nullptr) return *found;
  fail(fmt::format("No {} named '{}'.", kind, name.is_string() ? name.as_string() : "?"));
}

Value map(Interpreter& interpreter, const Value& self, const BoundArgs& bound) {
  if (!truthy(self)) return interpreter.make_iterator({});
  Args args = *bound.raw;
  std::vector<Value> mapped;
  const std::optional<Value> attribute =
      args.positional.empty() ? args.take("attribute", interpreter.budget) : std::nullopt;
  if (attribute) {
    const std::optional<Value> otherwise = args.take("default", interpreter.budget);
    if (!args.keyword.empty()) {
      fail(fmt::format("Unexpected keyword argument '{}'", args.keyword[0].first));
    }
    for (const Value& item : to_items(interpreter, self)) {
      mapped.push_back(
          attribute_path(interpreter, item, *attribute, otherwise ? &*otherwise : nullptr));
    }
    return interpreter.make_iterator(std::move(mapped));
  }
  if (args.positional.empty()) fail("map requires a filter argument");
  const Builtin& filter = named(args.positional[0], find_filter, "filter", interpreter.budget);
  const Args rest = without_first(args);
  for (const Value& item : to_items(interpreter, self)) {
    const Interpreter::Level level(interpreter);
    mapped.push_back(call_builtin(interpreter, filter, item, rest));
  }
  return interpreter.make_iterator(std::move(mapped));
}

template <bool kByAttribute, bool kWanted>
Value choose(Interpreter& interpreter, const Value& self, const BoundArgs& bound) {
  if (!truthy(self)) return interpreter.make_iterator({});
  Args args = *bound.raw;
  if (kByAttribute && args.positional.empty()) fail("Missing parameter for attribute name");
  const Value path = kByAttribute ? args.positional[0] : Value();
  if (kByAttribute) args = without_first(args);
  const Builtin* test = nullptr;
  if (!args.positional.empty()) {
    test = &named(args.positional[0], find_test, "test", interpreter.budget);
    args = without_first(args);
  }
  std::vector<Value> kept;
  for (const Value& item : to_items(interpreter, self)) {
    const Value subject = attribute_path(interpreter, item, path);
    const bool passes =
        truthy(test == nullptr ? subject : call_builtin(interpreter, *test, subject, args));
    if (passes == kWanted) kept.push_back(item);
  }
  return interpreter.make_iterator(std::move(kept));
}

// ---- numbers

Value truncated(double number) {
  if (std::isnan(number)) fail("cannot convert float NaN to integer");
  if (std::isinf(number)) fail("cannot convert float infinity to integer");
  if (std::fabs(number) >= 9223372036854775808.0) fail("an integer is beyond 64 bits");
  return Value::integer(static_cast<int64_t>(number));
}

Value int_filter(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  const Value otherwise = args[0] == nullptr ? Value::integer(0) : args.value(0);
  if (self.is_undefined()) fail(self.undefined_reason());
  if (self.is_integral()) return Value::integer(self.as_int());
  if (self.is_float()) return std::isnan(self.as_float()) ? otherwise : truncated(self.as_float());
  if (!self.is_string()) return otherwise;
  interpreter.budget.read(self.as_string().size());
  const int64_t base = args.integer(1, 10);
  if (base >= 0 && base <= 36 && base != 1) {
    if (const auto number = parse_int(self.as_string(), static_cast<int>(base))) {
      return Value::integer(*number);
    }
  }
  const std::optional<double> number = parse_float(self.as_string());
  return number && std::isfinite(*number) ? truncated(*number) : otherwise;
}

Value float_filter(Interpreter& interpreter, const Value& self, const BoundArgs& args) {
  if (self.is_undefined()) fail(self.undefined_reason());
  if (self.is_number()) return Value::real(self.as_float());
  if (self.is_string()) {
    interpreter.budget.read(self.as_string().size());
    if (const std::optional<double> number = parse_float(self.as_string())) {
      return Value::real(*number);
    }
  }
  return args[0] == nullptr ? Value::real(0) : args.value(0);
}

Value abs_filter(Interpreter&, const Value& self, const BoundArgs&) {
  if (self.is_float()) return Value::real(std::fabs(self.as_float()));
  if (self.is_undefined()) fail(self.undefined_reason());
  if (!self.is_integral()) fail(fmt::format("bad operand type for abs(): '{}'", self.type_name()));
  return self.as_int() < 0 ? negate(self, true) : Value::integer(self.as_int());
}

Value round_filter(Interpreter&, const Value& self, const BoundArgs& args) {
  const int64_t precision = args.integer(0);
  const std::string method = args[1] == nullptr ? "common" : args.text(1);
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("method must be common, ceil or floor");
  }
  if (precision < 0 || precision > 330) {
    fail(fmt::format("round takes a precision of 0 to 330 digits; got {}", precision));
  }
  if (self.is_undefined()) fail(self.undefined_reason());
  if (!self.is_number()) {
    fail(fmt::format("type {} doesn't define __round__ method", self.type_name()));
  }
  const double number = self.as_float();
  if (method == "common") {
    if (self.is_integral() || !std::isfinite(number)) {
      return self.is_bool() ? Value::integer(self.as_int()) : self;
    }
    // Rounds half to even, by the exact decimal value of the double.
    return Value::real(std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr));
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * unit;
  if (!std::isfinite(scaled)) fail("cannot convert float infinity or NaN to integer");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

constexpr Builtin kFilters[] = {
    {"abs", "", abs_filter},
    {"attr", "name", attr},
    {"batch", "linecount | fill_with", batch},
    {"count", "", length},
    {"d", "| default_value boolean", default_value},
    {"default", "| default_value boolean", default_value},
    {"dictsort", "| case_sensitive by reverse", dictsort},
    {"first", "", first},
    {"float", "| default", float_filter},
    {"groupby", "attribute | default case_sensitive", groupby},
    {"int", "| default base", int_filter},
    {"items", "", items},
    {"last", "", last},
    {"length", "", length},
    {"list", "", list},
    {"map", "*", map},
    {"max", "| case_sensitive attribute", extreme<true>},
    {"min", "| case_sensitive attribute", extreme<false>},
    {"reject", "*", choose<false, false>},
    {"rejectattr", "*", choose<true, false>},
    {"reverse", "", reverse},
    {"round", "| precision method", round_filter},
    {"select", "*", choose<false, true>},
    {"selectattr", "*", choose<true, true>},
    {"slice", "slices | fill_with", slice},
    {"sort", "| reverse case_sensitive attribute", sort},
    {"sum", "| attribute start", sum},
    {"unique", "| case_sensitive attribute", unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() {
  return kFilters;
}

}  // namespace quire::jinja
