#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "jinja/budget.h"
#include "jinja/object.h"
#include "jinja/unicode.h"

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
  fail(
      fmt::format("the template makes too much text or too many values; expected at most {} bytes "
                  "at a time",
                  max_live_bytes_));
}

MemoryCharge::MemoryCharge(Budget& budget, size_t num_bytes)
    : budget_(&budget), num_bytes_(num_bytes) {
  budget.take(num_bytes);
}
MemoryCharge::MemoryCharge(MemoryCharge&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)), num_bytes_(other.num_bytes_) {}
MemoryCharge& MemoryCharge::operator=(MemoryCharge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}
MemoryCharge::~MemoryCharge() {
  if (budget_ != nullptr) budget_->give_back(num_bytes_);
}
void MemoryCharge::add(size_t num_bytes) {
  if (budget_ == nullptr) return;
  budget_->take(num_bytes);
  num_bytes_ += num_bytes;
}

namespace {

Value make_sequence(std::vector<Value> items, Sequence::Type type) {
  return Value::of(std::make_shared<const Sequence>(std::move(items), type));
}

}  // namespace

Sequence::Sequence(std::vector<Value> the_items, Type the_type)
    : items(std::move(the_items)), type(the_type), hashable(the_type != Type::kList) {
  for (const Value& item : items) {
    depth = std::max(depth, item.depth() + 1);
    hashable = hashable && is_hashable(item);
  }
}

Value Value::undefined(const char* reason) {
  return of(std::make_shared<const UndefinedReason>(UndefinedReason{reason}));
}

Value Value::string(std::string_view text) {
  auto result = std::make_shared<Text>();
  result->utf8 = is_valid_utf8(text) ? std::string(text) : replace_invalid_utf8(text);
  result->num_chars = count_chars(result->utf8);
  return of(TextPtr(std::move(result)));
}

Value Value::list(std::vector<Value> items) {
  return make_sequence(std::move(items), Sequence::Type::kList);
}
Value Value::tuple(std::vector<Value> items) {
  return make_sequence(std::move(items), Sequence::Type::kTuple);
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
  switch (kind()) {
    case Kind::kSequence:
      return sequence()->depth;
    case Kind::kDict:
      return dict()->depth();
    case Kind::kObject:
      return object()->depth;
    default:
      return 0;
  }
}

std::string Value::type_name() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kSequence:
      return is_list() ? "list" : "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kObject:
      break;
  }
  return object()->type_name();
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

}  // namespace quire::jinja
