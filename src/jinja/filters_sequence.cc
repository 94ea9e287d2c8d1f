// Filters over the items of a value.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"

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
                    : interpreter.make_string(std::string(part)));
    if (end == rest.size()) return value;
    rest.remove_prefix(end + 1);
  }
}

namespace {

using Run = Interpreter&;

Value ignore_case(Run run, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return run.make_string(map_text(run.budget, lower, value.as_string()));
}

// The key by which an item is sorted, compared or grouped.
Value key_of(Run run, const Value& item, const Value* attribute, bool case_sensitive,
             const Value* otherwise = nullptr) {
  const Value key = attribute == nullptr ? item : attribute_path(run, item, *attribute, otherwise);
  return ignore_case(run, key, case_sensitive);
}

struct Keyed {
  Value key, item;
};

// Python's sorted(): stable, also with `reverse`.
std::vector<Value> sorted(Run run, std::vector<Keyed> pairs, bool reverse) {
  if (reverse) std::reverse(pairs.begin(), pairs.end());
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const Keyed& a, const Keyed& b) { return less(a.key, b.key, run.budget); });
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
Value item_at(Run run, const Value& self, int64_t idx) {
  const Value item = get_item(run, self, Value::integer(idx));
  return self.is_string() ? run.make_string(item.as_string()) : item;
}

Value first(Run run, const Value& self, const Bound&) {
  if (auto* iterator = self.object_as<Iterator>()) {
    if (std::optional<Value> item = iterator->next()) return *item;
  } else if (has_positions(self)) {
    if (truthy(self)) return item_at(run, self, 0);
  } else {
    const std::vector<Value> items = to_items(run, self);
    if (!items.empty()) return items[0];
  }
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Run run, const Value& self, const Bound&) {
  if (self.object_as<Iterator>() != nullptr) fail("'generator' object is not reversible");
  if (self.is_undefined()) fail("'Undefined' object is not reversible");
  if (has_positions(self) && truthy(self)) return item_at(run, self, -1);
  const std::vector<Value> items = to_items(run, self);
  if (items.empty()) return Value::undefined("No last item, sequence was empty.");
  return items.back();
}

Value length(Run run, const Value& self, const Bound&) {
  const std::optional<int64_t> count = length_of(run, self);
  if (!count) fail(fmt::format("object of type '{}' has no len()", self.type_name()));
  return Value::integer(*count);
}

Value list(Run run, const Value& self, const Bound&) {
  return run.make_list(to_items(run, self));
}

Value items(Run run, const Value& self, const Bound&) {
  if (self.is_undefined()) return run.make_iterator({});
  if (!self.is_dict()) fail("Can only get item pairs from a mapping.");
  return run.make_iterator(*DictView(self.dict(), DictView::Part::kItems).iterate(run));
}

Value reverse(Run run, const Value& self, const Bound&) {
  if (self.is_string()) {
    return get_slice(run, self, Value(), Value(), Value::integer(-1));
  }
  if (!is_iterable(self)) fail("argument must be iterable");
  std::vector<Value> values = to_items(run, self);
  std::reverse(values.begin(), values.end());
  // In Jinja, a generator is first made into a list, so the result is a list.
  if (self.object_as<Iterator>() != nullptr) return run.make_list(std::move(values));
  return run.make_iterator(std::move(values));
}

Value sort(Run run, const Value& self, const Bound& args) {
  const bool case_sensitive = args.flag(1);
  std::vector<Value> paths;
  if (args.has(2) && args.value(2).is_string()) {
    std::string_view rest = args.text(2);
    while (true) {
      const size_t end = std::min(rest.find(','), rest.size());
      paths.push_back(run.make_string(std::string(rest.substr(0, end))));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  } else {
    paths.push_back(args.has(2) ? args.value(2) : Value());
  }
  std::vector<Keyed> pairs;
  for (const Value& item : to_items(run, self)) {
    std::vector<Value> keys;
    for (const Value& path : paths) keys.push_back(key_of(run, item, &path, case_sensitive));
    pairs.push_back({run.make_list(std::move(keys)), item});
  }
  return run.make_list(sorted(run, std::move(pairs), args.flag(0)));
}

Value dictsort(Run run, const Value& self, const Bound& args) {
  const std::string by = args[1] == nullptr ? "key" : args.text(1);
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (!self.is_dict()) {
    if (self.is_undefined()) fail(self.undefined_reason());
    fail(fmt::format("'{}' object has no attribute 'items'", self.type_name()));
  }
  std::vector<Keyed> pairs;
  for (const auto& [key, value] : self.dict()->entries()) {
    pairs.push_back(
        {ignore_case(run, by == "key" ? key : value, args.flag(0)), run.make_tuple({key, value})});
  }
  return run.make_list(sorted(run, std::move(pairs), args.flag(2)));
}

Value unique(Run run, const Value& self, const Bound& args) {
  const auto before = [&](const Value& a, const Value& b) {
    return compare_keys(a, b, &run.budget) < 0;
  };
  std::set<Value, decltype(before)> seen(before);
  std::vector<Value> kept;
  for (const Value& item : to_items(run, self)) {
    const Value key = key_of(run, item, args[1], args.flag(0));
    require_hashable(key);
    if (seen.insert(key).second) kept.push_back(item);
  }
  return run.make_iterator(std::move(kept));
}

Value extreme(Run run, const Value& self, const Bound& args, bool maximum) {
  const std::vector<Value> values = to_items(run, self);
  if (values.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  Value best_key = key_of(run, values[0], args[1], args.flag(0));
  for (size_t i = 1; i < values.size(); ++i) {
    Value key = key_of(run, values[i], args[1], args.flag(0));
    if (maximum ? !less(best_key, key, run.budget) : !less(key, best_key, run.budget)) continue;
    best = i;
    best_key = std::move(key);
  }
  return values[best];
}
Value min(Run run, const Value& self, const Bound& args) {
  return extreme(run, self, args, false);
}
Value max(Run run, const Value& self, const Bound& args) {
  return extreme(run, self, args, true);
}

Value sum(Run run, const Value& self, const Bound& args) {
  Value total = args[1] == nullptr ? Value::integer(0) : args.value(1);
  if (total.is_string()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : to_items(run, self)) {
    const Value part = args.has(0) ? attribute_path(run, item, args.value(0)) : item;
    total = apply_binary(run, BinaryOp::kAdd, total, part);
  }
  return total;
}

Value batch(Run run, const Value& self, const Bound& args) {
  const int64_t size = args.integer(0);
  std::vector<Value> batches, current;
  for (const Value& item : to_items(run, self)) {
    if (static_cast<int64_t>(current.size()) == size) {
      batches.push_back(run.make_list(std::exchange(current, {})));
    }
    current.push_back(item);
  }
  if (!current.empty()) {
    if (args.has(1) && size > 0) {
      run.budget.want(static_cast<size_t>(size) > SIZE_MAX / 64 ? SIZE_MAX
                                                                : static_cast<size_t>(size) * 32);
      while (static_cast<int64_t>(current.size()) < size) current.push_back(args.value(1));
    }
    batches.push_back(run.make_list(std::move(current)));
  }
  return run.make_iterator(std::move(batches));
}

Value slice(Run run, const Value& self, const Bound& args) {
  const std::vector<Value> values = to_items(run, self);
  const int64_t count = args.integer(0);
  if (count == 0) fail("integer division or modulo by zero");
  std::vector<Value> slices;
  const int64_t size = static_cast<int64_t>(values.size());
  for (int64_t i = 0, start = 0; i < count; ++i) {
    const bool is_longer = i < size % count;
    const int64_t end = start + size / count + is_longer;
    std::vector<Value> part(values.begin() + start, values.begin() + end);
    if (args.has(1) && !is_longer) part.push_back(args.value(1));
    slices.push_back(run.make_list(std::move(part)));
    start = end;
  }
  return run.make_iterator(std::move(slices));
}

Value groupby(Run run, const Value& self, const Bound& args) {
  const bool case_sensitive = args.flag(2);
  std::vector<Keyed> pairs;
  for (const Value& item : to_items(run, self)) {
    pairs.push_back({key_of(run, item, args[0], case_sensitive, args[1]), item});
  }
  std::vector<Value> groups, members;
  Value key;
  const auto close_group = [&] {
    if (members.empty()) return;
    const Value label =
        case_sensitive ? key : attribute_path(run, members[0], args.value(0), args[1]);
    groups.push_back(
        run.make_list({label, run.make_list(std::exchange(members, {}))}, Sequence::Type::kGroup));
  };
  for (const Value& item : sorted(run, std::move(pairs), false)) {
    const Value item_key = key_of(run, item, args[0], case_sensitive, args[1]);
    if (!members.empty() && !equal(key, item_key, &run.budget)) close_group();
    key = item_key;
    members.push_back(item);
  }
  close_group();
  return run.make_list(std::move(groups));
}

Value attr(Run run, const Value& self, const Bound& args) {
  if (self.is_undefined()) fail(self.undefined_reason());
  const std::string& name = args.text(0);
  // Unlike a.b, this filter does not fall back to a['b'].
  if (self.is_dict() && find_method(self, name) == nullptr) {
    return run.make_undefined(fmt::format("'dict object' has no attribute '{}'", shortened(name)));
  }
  return get_attribute(run, self, name);
}

Value default_value(Run run, const Value& self, const Bound& args) {
  if (!self.is_undefined() && !(args.flag(1) && !truthy(self))) return self;
  return args[0] == nullptr ? run.make_string("") : args.value(0);
}

constexpr Builtin kFilters[] = {
    {"attr", "name", attr},
    {"batch", "linecount | fill_with", batch},
    {"count", "", length},
    {"d", "| default_value boolean", default_value},
    {"default", "| default_value boolean", default_value},
    {"dictsort", "| case_sensitive by reverse", dictsort},
    {"first", "", first},
    {"groupby", "attribute | default case_sensitive", groupby},
    {"items", "", items},
    {"last", "", last},
    {"length", "", length},
    {"list", "", list},
    {"max", "| case_sensitive attribute", max},
    {"min", "| case_sensitive attribute", min},
    {"reverse", "", reverse},
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
