// map, select, reject and their attribute forms. Their results behave like generators.
#include <fmt/format.h>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;

Args rest_of(const Args& args, size_t from) {
  Args rest;
  for (size_t i = from; i < args.positional.size(); ++i) {
    rest.positional.push_back(args.positional[i]);
  }
  rest.keyword = args.keyword;
  return rest;
}

const Builtin& named(const Value& name, const Builtin* (*find)(std::string_view),
                     std::string_view kind, Budget& budget) {
  if (name.is_string()) budget.read(name.as_string().size());
  const Builtin* found = name.is_string() ? find(name.as_string()) : nullptr;
  if (found != nullptr) return *found;
  fail(fmt::format("No {} named '{}'.", kind, name.is_string() ? name.as_string() : "?"));
}

Value map(Run run, const Value& self, const Bound& bound) {
  if (!truthy(self)) return run.make_iterator({});
  Args args = *bound.raw;
  std::vector<Value> mapped;
  const std::optional<Value> attribute =
      args.positional.empty() ? args.take("attribute", run.budget) : std::nullopt;
  if (attribute) {
    const std::optional<Value> otherwise = args.take("default", run.budget);
    if (!args.keyword.empty()) {
      fail(fmt::format("Unexpected keyword argument '{}'", args.keyword[0].first));
    }
    for (const Value& item : to_items(run, self)) {
      mapped.push_back(attribute_path(run, item, *attribute, otherwise ? &*otherwise : nullptr));
    }
    return run.make_iterator(std::move(mapped));
  }
  if (args.positional.empty()) fail("map requires a filter argument");
  const Builtin& filter = named(args.positional[0], find_filter, "filter", run.budget);
  const Args rest = rest_of(args, 1);
  for (const Value& item : to_items(run, self)) {
    const Interpreter::Level level(run);
    mapped.push_back(call_builtin(run, filter, item, rest));
  }
  return run.make_iterator(std::move(mapped));
}

Value choose(Run run, const Value& self, const Args& args, bool by_attribute, bool wanted) {
  if (!truthy(self)) return run.make_iterator({});
  const size_t off = by_attribute ? 1 : 0;
  if (by_attribute && args.positional.empty()) fail("Missing parameter for attribute name");
  const Builtin* test = args.positional.size() > off
                            ? &named(args.positional[off], find_test, "test", run.budget)
                            : nullptr;
  const Args rest = rest_of(args, off + 1);
  std::vector<Value> kept;
  for (const Value& item : to_items(run, self)) {
    const Value subject = by_attribute ? attribute_path(run, item, args.positional[0]) : item;
    const bool passes = truthy(test == nullptr ? subject : call_builtin(run, *test, subject, rest));
    if (passes == wanted) kept.push_back(item);
  }
  return run.make_iterator(std::move(kept));
}

template <bool kByAttribute, bool kWanted>
Value chosen(Run run, const Value& self, const Bound& args) {
  return choose(run, self, *args.raw, kByAttribute, kWanted);
}

constexpr Builtin kFilters[] = {
    {"map", "*", map},
    {"reject", "*", chosen<false, false>},
    {"rejectattr", "*", chosen<true, false>},
    {"select", "*", chosen<false, true>},
    {"selectattr", "*", chosen<true, true>},
};

}  // namespace

std::span<const Builtin> selection_filters() {
  return kFilters;
}

}  // namespace quire::jinja
