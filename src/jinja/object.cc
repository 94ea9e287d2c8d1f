#include "jinja/object.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/budget.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

std::optional<size_t> find_named(const NamedValues& values, std::string_view name, Budget& budget) {
  for (size_t i = 0; i < values.size(); ++i) {
    budget.visit(1);
    if (values[i].first.size() != name.size()) continue;
    budget.read(name.size());
    if (values[i].first == name) return i;
  }
  return std::nullopt;
}

std::optional<Value> Args::take(std::string_view name, Budget& budget) {
  const std::optional<size_t> idx = find_named(keyword, name, budget);
  if (!idx) return std::nullopt;
  budget.visit(keyword.size() - *idx);
  const auto at = keyword.begin() + static_cast<std::ptrdiff_t>(*idx);
  std::optional<Value> value(std::move(at->second));
  keyword.erase(at);
  return value;
}

Value Object::call(Interpreter&, Args) {
  fail(fmt::format("'{}' object is not callable", type_name()));
}
std::optional<Value> Object::attribute(Interpreter&, std::string_view) {
  return std::nullopt;
}
std::optional<Value> Object::item(const Value&, Budget&) {
  return std::nullopt;
}
std::optional<int64_t> Object::length(Budget&) {
  return std::nullopt;
}
std::optional<std::vector<Value>> Object::iterate(Interpreter&) {
  return std::nullopt;
}
bool Object::equals(const Object&, Budget*) const {
  return false;
}
void Object::write_repr(TextBuilder& out, int) const {
  out.append(fmt::format("<{} object>", type_name()));
}

// ---- DictView

DictView::DictView(Value::DictPtr the_dict, Part the_part)
    : dict(std::move(the_dict)), part(the_part) {
  depth = dict->depth() + 1;
}

std::string DictView::type_name() const {
  constexpr const char* kNames[] = {"dict_keys", "dict_values", "dict_items"};
  return kNames[static_cast<int>(part)];
}

Value DictView::element(size_t idx) const {
  const auto& [key, value] = dict->entries()[idx];
  if (part == Part::kKeys) return key;
  if (part == Part::kValues) return value;
  return Value::tuple({key, value});
}

std::optional<int64_t> DictView::length(Budget&) {
  return static_cast<int64_t>(dict->entries().size());
}

std::optional<std::vector<Value>> DictView::iterate(Interpreter& interpreter) {
  std::vector<Value> elements;
  elements.reserve(dict->entries().size());
  for (size_t i = 0; i < dict->entries().size(); ++i) {
    const auto& [key, value] = dict->entries()[i];
    elements.push_back(part == Part::kItems ? interpreter.make_tuple({key, value}) : element(i));
  }
  return elements;
}

void DictView::write_repr(TextBuilder& out, int level) const {
  out.append(type_name() + "([");
  for (size_t i = 0; i < dict->entries().size(); ++i) {
    if (i > 0) out.append(", ");
    jinja::write_repr(element(i), out, level + 1);
  }
  out.append("])");
}

// ---- Range

Range::Range(int64_t the_start, int64_t the_stop, int64_t the_step)
    : start(the_start), stop(the_stop), step(the_step) {
  if (step == 0) fail("range() arg 3 must not be zero");
  constexpr int64_t kMaxLength = 100'000;  // as in Jinja's sandbox
  constexpr int64_t kMaxBound = int64_t{1} << 60;
  for (const int64_t bound : {start, stop, step}) {
    if (bound > kMaxBound || bound < -kMaxBound) fail("a bound of range() is too large");
  }
  if (size() > kMaxLength) {
    fail(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
                     kMaxLength));
  }
}

int64_t Range::size() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

std::optional<Value> Range::item(const Value& key, Budget&) {
  if (!key.is_integral()) return std::nullopt;
  const int64_t length = size();
  const int64_t idx = key.as_int() < 0 ? key.as_int() + length : key.as_int();
  if (idx < 0 || idx >= length) return std::nullopt;
  return Value::integer(at(idx));
}

std::optional<std::vector<Value>> Range::iterate(Interpreter&) {
  std::vector<Value> numbers;
  for (int64_t i = 0; i < size(); ++i) numbers.push_back(Value::integer(at(i)));
  return numbers;
}

bool Range::equals(const Object& other, Budget*) const {
  const auto* range = dynamic_cast<const Range*>(&other);
  if (range == nullptr || size() != range->size()) return false;
  if (size() == 0) return true;
  return start == range->start && (size() == 1 || step == range->step);
}

void Range::write_repr(TextBuilder& out, int) const {
  out.append(step == 1 ? fmt::format("range({}, {})", start, stop)
                       : fmt::format("range({}, {}, {})", start, stop, step));
}

// ---- the others

Iterator::Iterator(std::vector<Value> the_items) : items(std::move(the_items)) {
  for (const Value& item : items) depth = std::max(depth, item.depth());
  ++depth;
}

std::optional<Value> Iterator::next() {
  if (position == items.size()) return std::nullopt;
  return items[position++];
}

std::optional<std::vector<Value>> Iterator::iterate(Interpreter&) {
  std::vector<Value> rest(items.begin() + static_cast<std::ptrdiff_t>(position), items.end());
  position = items.size();
  return rest;
}

std::optional<Value> Namespace::attribute(Interpreter& interpreter, std::string_view name) {
  const std::optional<size_t> idx = find_named(attributes, name, interpreter.budget);
  return idx ? std::optional<Value>(attributes[*idx].second) : std::nullopt;
}

void Namespace::set(const std::string& name, Value value, Budget& budget) {
  if (name.starts_with('_')) {
    fail(
        fmt::format("a namespace takes no attribute whose name begins with an underscore; got "
                    "'{}', rename it",
                    name));
  }
  if (const std::optional<size_t> idx = find_named(attributes, name, budget)) {
    attributes[*idx].second = std::move(value);
    return;
  }
  charge.add(sizeof(NamedValues::value_type) + name.size());
  attributes.emplace_back(name, std::move(value));
}

void Namespace::write_repr(TextBuilder& out, int level) const {
  out.append("<Namespace {");
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (i > 0) out.append(", ");
    jinja::write_repr(Value::string(attributes[i].first), out, level + 1);
    out.append(": ");
    jinja::write_repr(attributes[i].second, out, level + 1);
  }
  out.append("}>");
}

Cycler::Cycler(std::vector<Value> the_items) : items(std::move(the_items)) {
  if (items.empty()) fail("at least one item has to be provided");
  for (const Value& item : items) depth = std::max(depth, item.depth());
  ++depth;
}

Value Joiner::call(Interpreter&, Args args) {
  if (!args.positional.empty() || !args.keyword.empty()) fail("a joiner takes no arguments");
  return std::exchange(used, true) ? separator : Value::string("");
}

}  // namespace quire::jinja
