#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "jinja/interpreter.h"
#include "jinja/python_text.h"

namespace quire::jinja {

void fail(std::string message) {
  throw Error{std::move(message)};
}
void fail_at(int line, std::string message) {
  throw Error{std::move(message), line};
}

void Budget::fail_steps() const {
  fail(fmt::format("the template takes too many steps; expected at most {}", max_units_ / 64));
}
void Budget::fail_memory() const {
  fail(fmt::format("the template's values take too much memory; expected at most {} bytes",
                   max_live_bytes_));
}

Sequence::Sequence(std::vector<Value> the_items, Type the_type)
    : items(std::move(the_items)), type(the_type) {
  for (const Value& item : items) depth = std::max(depth, item.depth() + 1);
}

Value Value::undefined(const char* reason) {
  return of(std::make_shared<const UndefinedReason>(UndefinedReason{reason}));
}

namespace {

std::shared_ptr<Text> valid_text(std::string_view text) {
  auto result = std::make_shared<Text>();
  result->text = is_valid_utf8(text) ? std::string(text) : replace_invalid_utf8(text);
  result->num_chars = count_chars(result->text);
  return result;
}

bool is_role(std::string_view text) {
  constexpr std::string_view kRoles[] = {"assistant", "developer", "function", "observation",
                                         "system",    "tool",      "user"};
  return std::find(std::begin(kRoles), std::end(kRoles), text) != std::end(kRoles);
}

}  // namespace

Value Value::string(std::string_view text, uint32_t owner) {
  std::shared_ptr<Text> result = valid_text(text);
  if (is_role(text)) return of(TextPtr(std::move(result)));
  result->untrusted = ByteSpans::whole(result->text.size(), owner);
  return of(TextPtr(std::move(result)));
}

Value Value::marked(MarkedText text) {
  auto result = std::make_shared<Text>();
  result->num_chars = count_chars(text.text);
  static_cast<MarkedText&>(*result) = std::move(text);
  return of(TextPtr(std::move(result)));
}

Value Value::literal(std::string_view text) {
  return of(TextPtr(valid_text(text)));
}

Value Value::list(std::vector<Value> items) {
  return of(std::make_shared<const Sequence>(std::move(items), Sequence::Type::kList));
}
Value Value::tuple(std::vector<Value> items) {
  return of(std::make_shared<const Sequence>(std::move(items), Sequence::Type::kTuple));
}

Value Value::dict(const std::vector<std::pair<std::string, Value>>& entries) {
  std::vector<Dict::Entry> built;
  built.reserve(entries.size());
  for (const auto& [key, value] : entries) built.emplace_back(string(key), value);
  return of(DictPtr(Dict::build(std::move(built))));
}

const std::string& Value::undefined_reason() const {
  return std::get<UndefinedPtr>(data_)->message;
}

int Value::depth() const {
  if (is_sequence()) return sequence()->depth;
  if (is_dict()) return dict()->depth();
  return is_object() ? object()->depth : 0;
}

std::string Value::type_name() const {
  constexpr const char* kNames[] = {"Undefined", "NoneType", "bool", "int",   "float",
                                    "str",       "list",     "dict", "object"};
  if (is_object()) return object()->type_name();
  return is_tuple() ? "tuple" : kNames[static_cast<size_t>(kind())];
}

// ---- Dict

std::shared_ptr<Dict> Dict::build(std::vector<Entry> entries, Budget* budget) {
  for (const auto& [key, value] : entries) require_hashable(key);
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return compare_keys(entries[a].first, entries[b].first, budget) < 0;
  });
  std::vector<bool> dropped(entries.size());
  for (size_t i = 0; i < order.size();) {
    const uint32_t first = order[i];
    size_t end = i + 1;
    while (end < order.size() &&
           compare_keys(entries[first].first, entries[order[end]].first, budget) == 0) {
      dropped[order[end++]] = true;
    }
    if (end > i + 1) entries[first].second = std::move(entries[order[end - 1]].second);
    i = end;
  }
  auto dict = std::make_shared<Dict>();
  std::vector<uint32_t> new_idx(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (dropped[i]) continue;
    new_idx[i] = static_cast<uint32_t>(dict->entries_.size());
    dict->depth_ =
        std::max({dict->depth_, entries[i].first.depth() + 1, entries[i].second.depth() + 1});
    dict->entries_.push_back(std::move(entries[i]));
  }
  for (const uint32_t i : order) {
    if (!dropped[i]) dict->order_.push_back(new_idx[i]);
  }
  return dict;
}

const Value* Dict::find(const Value& key, Budget* budget) const {
  require_hashable(key);
  const auto at =
      std::lower_bound(order_.begin(), order_.end(), key, [&](uint32_t idx, const Value& wanted) {
        return compare_keys(entries_[idx].first, wanted, budget) < 0;
      });
  if (at == order_.end() || compare_keys(entries_[*at].first, key, budget) != 0) return nullptr;
  return &entries_[*at].second;
}

const Value* Dict::find(std::string_view key, Budget& budget) const {
  // By compare_keys(), strings sort after numbers and before all other values.
  const auto at = std::lower_bound(order_.begin(), order_.end(), key,
                                   [&](uint32_t idx, std::string_view wanted) {
                                     const Value& present = entries_[idx].first;
                                     budget.visit(1);
                                     budget.read(wanted.size());
                                     if (present.is_string()) return present.as_string() < wanted;
                                     return present.is_number();
                                   });
  if (at == order_.end()) return nullptr;
  const auto& [present, value] = entries_[*at];
  return present.is_string() && present.as_string() == key ? &value : nullptr;
}

// ---- Python's truth, equality, order and text of values

namespace {

constexpr int kMaxReprDepth = 600;

// Compares exactly: -1, 0 or 1; 2 if one of them is NaN.
int compare_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return left.as_int() < right.as_int() ? -1 : left.as_int() > right.as_int();
  }
  // A long double's mantissa of at least 64 bits holds every int64 and double.
  const auto wide = [](const Value& v) {
    return v.is_float() ? static_cast<long double>(v.as_float())
                        : static_cast<long double>(v.as_int());
  };
  const long double a = wide(left);
  const long double b = wide(right);
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : a > b;
}

void charge_step(Budget* budget) {
  if (budget != nullptr) budget->step();
}
void charge_bytes(Budget* budget, size_t num_bytes) {
  if (budget != nullptr) budget->read(num_bytes);
}

bool equal_dicts(const Dict& left, const Dict& right, Budget* budget) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key, budget);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

bool equal_sequences(const Sequence& left, const Sequence& right, Budget* budget) {
  const bool lists = left.type == Sequence::Type::kList;
  if (lists != (right.type == Sequence::Type::kList)) return false;
  if (left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(left.items[i], right.items[i], budget)) return false;
  }
  return true;
}

// The order of kinds among keys: numbers, strings, None, undefined values.
enum KeyRank { kNumberKey, kStringKey, kNoneKey, kUndefinedKey };
KeyRank key_rank(const Value& value) {
  if (value.is_string()) return kStringKey;
  if (value.is_number()) return kNumberKey;
  return value.is_none() ? kNoneKey : kUndefinedKey;
}

}  // namespace

bool truthy(const Value& value) {
  if (value.is_number()) return value.as_float() != 0;
  if (value.is_string()) return !value.as_string().empty();
  if (value.is_sequence()) return !value.items().empty();
  if (value.is_dict()) return !value.dict()->entries().empty();
  return value.is_object() && value.object()->truthy();
}

bool equal(const Value& left, const Value& right, Budget* budget) {
  charge_step(budget);
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::kString:
      if (left.as_string().size() != right.as_string().size()) return false;
      charge_bytes(budget, left.as_string().size());
      return left.as_string() == right.as_string();
    case Value::Kind::kSequence:
      return equal_sequences(*left.sequence(), *right.sequence(), budget);
    case Value::Kind::kDict:
      return equal_dicts(*left.dict(), *right.dict(), budget);
    case Value::Kind::kObject:
      if (const auto* range = left.object_as<Range>()) {
        return right.object_as<Range>() != nullptr && *range == *right.object_as<Range>();
      }
      return left.object() == right.object();
    default:
      return true;  // both are None or both undefined
  }
}

bool less(const Value& left, const Value& right, Budget& budget, std::string_view op) {
  budget.step();
  if (left.is_undefined()) fail(left.undefined_reason());
  if (right.is_undefined()) fail(right.undefined_reason());
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == -1;
  if (left.is_string() && right.is_string()) {
    budget.read(std::min(left.as_string().size(), right.as_string().size()));
    return left.as_string() < right.as_string();  // UTF-8 bytes sort like code points
  }
  if (left.is_sequence() && right.is_sequence() && left.is_list() == right.is_list()) {
    const size_t common = std::min(left.items().size(), right.items().size());
    for (size_t i = 0; i < common; ++i) {
      if (!equal(left.items()[i], right.items()[i], &budget)) {
        return less(left.items()[i], right.items()[i], budget, op);
      }
    }
    return left.items().size() < right.items().size();
  }
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, left.type_name(),
                   right.type_name()));
}

bool is_hashable(const Value& value) {
  return !value.is_sequence() && !value.is_dict() && !value.is_object();
}

void require_hashable(const Value& value) {
  if (!is_hashable(value)) {
    fail(fmt::format("unhashable type: '{}'; keys are str, numbers or None", value.type_name()));
  }
}

int compare_keys(const Value& left, const Value& right, Budget* budget) {
  charge_step(budget);
  const KeyRank rank = key_rank(left);
  const KeyRank right_rank = key_rank(right);
  if (rank != right_rank) return rank < right_rank ? -1 : 1;
  if (rank == kNumberKey) {
    const int order = compare_numbers(left, right);
    if (order != 2) return order;
    // In Python, NaN equals nothing. Here all NaNs are one key, after all other numbers.
    return (left.is_float() && std::isnan(left.as_float())) -
           (right.is_float() && std::isnan(right.as_float()));
  }
  if (rank != kStringKey) return 0;
  charge_bytes(budget, std::min(left.as_string().size(), right.as_string().size()));
  return left.as_string().compare(right.as_string());
}

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  const std::string scientific(buffer, end.ptr);
  const size_t e = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return scientific;
  char fixed[64];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof(fixed), number, std::chars_format::fixed);
  std::string text(fixed, fixed_end.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

namespace {

// Like Python, uses double quotes if that avoids escapes, otherwise single quotes.
void write_quoted(const MarkedText& source, TextBuilder& out) {
  const std::string_view text = source.text;
  out.budget().read(text.size());
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  const auto escape = [quote](char32_t c, std::string_view) -> std::string {
    if (c == static_cast<char32_t>(quote) || c == '\\') return {'\\', static_cast<char>(c)};
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (is_printable(c)) return {};
    if (c < 0x100) return fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    if (c < 0x10000) return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    return fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  };
  out.append_literal({&quote, 1});
  write_escaped(source, out, escape);
  out.append_literal({&quote, 1});
}

void write_sequence(const Sequence& sequence, TextBuilder& out, int depth) {
  const bool is_list = sequence.type == Sequence::Type::kList;
  out.append_literal(is_list ? "[" : "(");
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out.append_literal(", ");
    write_repr(sequence.items[i], out, depth + 1);
  }
  if (!is_list && sequence.items.size() == 1) out.append_literal(",");
  out.append_literal(is_list ? "]" : ")");
}

void write_dict(const Dict& dict, TextBuilder& out, int depth) {
  out.append_literal("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.append_literal(", ");
    first = false;
    write_repr(key, out, depth + 1);
    out.append_literal(": ");
    write_repr(value, out, depth + 1);
  }
  out.append_literal("}");
}

}  // namespace

void write_repr(const Value& value, TextBuilder& out, int depth) {
  if (depth > kMaxReprDepth) fail("values are nested too deeply to be printed");
  out.budget().step();
  if (value.is_undefined()) return out.append_literal("Undefined");
  if (value.is_none()) return out.append_literal("None");
  if (value.is_bool()) return out.append_literal(value.as_bool() ? "True" : "False");
  if (value.is_int()) return out.append_literal(fmt::format("{}", value.as_int()));
  if (value.is_float()) return out.append_literal(float_repr(value.as_float()));
  if (value.is_sequence()) return write_sequence(*value.sequence(), out, depth);
  if (value.is_dict()) return write_dict(*value.dict(), out, depth);
  if (value.is_object()) return value.object()->write_repr(out, depth);
  if (!value.text()->markup) return write_quoted(*value.text(), out);
  out.append_literal("Markup(");
  write_quoted(*value.text(), out);
  out.append_literal(")");
}

MarkedText to_repr(const Value& value, Budget& budget) {
  TextBuilder out(budget);
  write_repr(value, out);
  return out.take();
}

void write_str(const Value& value, TextBuilder& out) {
  if (value.is_string()) return out.append(*value.text());
  if (!value.is_undefined()) write_repr(value, out);
}

MarkedText to_str(const Value& value, Budget& budget) {
  TextBuilder out(budget);
  write_str(value, out);
  return out.take();
}

// ---- objects

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
void Object::write_repr(TextBuilder& out, int) const {
  out.append_literal(fmt::format("<{} object>", type_name()));
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

std::optional<std::vector<Value>> DictView::iterate(Interpreter& interpreter) {
  std::vector<Value> elements;
  elements.reserve(dict->entries().size());
  for (size_t i = 0; i < dict->entries().size(); ++i) {
    const auto& [key, value] = dict->entries()[i];
    elements.push_back(part == Part::kKeys     ? key
                       : part == Part::kValues ? value
                                               : interpreter.make_tuple({key, value}));
  }
  return elements;
}

void DictView::write_repr(TextBuilder& out, int level) const {
  out.append_literal(type_name() + "([");
  bool first = true;
  for (const auto& [key, value] : dict->entries()) {
    if (!std::exchange(first, false)) out.append_literal(", ");
    jinja::write_repr(part == Part::kKeys     ? key
                      : part == Part::kValues ? value
                                              : Value::tuple({key, value}),
                      out, level + 1);
  }
  out.append_literal("])");
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

std::optional<std::vector<Value>> Range::iterate(Interpreter&) {
  std::vector<Value> numbers;
  for (int64_t i = 0; i < size(); ++i) numbers.push_back(Value::integer(at(i)));
  return numbers;
}

bool Range::operator==(const Range& other) const {
  if (size() != other.size()) return false;
  return size() == 0 || (start == other.start && (size() == 1 || step == other.step));
}

void Range::write_repr(TextBuilder& out, int) const {
  out.append_literal(step == 1 ? fmt::format("range({}, {})", start, stop)
                               : fmt::format("range({}, {}, {})", start, stop, step));
}

// ---- other objects

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
  out.append_literal("<Namespace {");
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (i > 0) out.append_literal(", ");
    jinja::write_repr(Value::string(attributes[i].first), out, level + 1);
    out.append_literal(": ");
    jinja::write_repr(attributes[i].second, out, level + 1);
  }
  out.append_literal("}>");
}

}  // namespace quire::jinja
