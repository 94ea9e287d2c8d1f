// The methods of dict, list, tuple and float that do not modify, and the attributes of cyclers.
#include <fmt/format.h>

#include <cmath>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;

template <DictView::Part kPart>
Value view(Run run, const Value& self, const Bound&) {
  return run.make_object(std::make_shared<DictView>(self.dict(), kPart));
}

Value get(Run run, const Value& self, const Bound& args) {
  if (const Value* value = self.dict()->find(args.value(0), &run.budget)) return *value;
  return args[1] == nullptr ? Value() : args.value(1);
}

// Values are immutable, so a copy is the value itself.
Value copy(Run, const Value& self, const Bound&) {
  return self;
}

Value count(Run run, const Value& self, const Bound& args) {
  int64_t found = 0;
  for (const Value& item : self.items()) found += equal(item, args.value(0), &run.budget);
  return Value::integer(found);
}

Value index(Run run, const Value& self, const Bound& args) {
  const auto length = static_cast<int64_t>(self.items().size());
  const auto position = [&](size_t idx, int64_t otherwise) {
    const int64_t at = args.integer(idx, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  for (int64_t i = position(1, 0); i < position(2, length); ++i) {
    if (equal(self.items()[static_cast<size_t>(i)], args.value(0), &run.budget)) {
      return Value::integer(i);
    }
  }
  fail(fmt::format("{} is not in list", to_repr(args.value(0), run.budget)));
}

Value is_integer(Run, const Value& self, const Bound&) {
  return Value::boolean(std::floor(self.as_float()) == self.as_float() &&
                        std::isfinite(self.as_float()));
}

constexpr Builtin kMethods[] = {
    {"dict.copy", "", copy},
    {"dict.get", "key | default", get},
    {"dict.items", "", view<DictView::Part::kItems>},
    {"dict.keys", "", view<DictView::Part::kKeys>},
    {"dict.values", "", view<DictView::Part::kValues>},
    {"float.is_integer", "", is_integer},
    {"list.copy", "", copy},
    {"list.count", "value", count},
    {"list.index", "value | start stop", index},
    {"tuple.count", "value", count},
    {"tuple.index", "value | start stop", index},
};

struct CyclerMethod : Object {
  CyclerMethod(std::shared_ptr<Cycler> the_cycler, bool resets)
      : cycler(std::move(the_cycler)), is_reset(resets) {
    depth = cycler->depth + 1;
  }
  std::string type_name() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Interpreter&, Args) override {
    if (is_reset) {
      cycler->position = 0;
      return {};
    }
    const size_t now = cycler->position;
    cycler->position = (now + 1) % cycler->items.size();
    return cycler->items[now];
  }

  std::shared_ptr<Cycler> cycler;
  bool is_reset;
};

}  // namespace

std::optional<Value> Cycler::attribute(Interpreter& interpreter, std::string_view name) {
  if (name == "current") return items[position];
  if (name != "next" && name != "reset") return std::nullopt;
  return interpreter.make_object(
      std::make_shared<CyclerMethod>(shared_from_this(), name == "reset"));
}

std::span<const Builtin> container_methods() {
  return kMethods;
}

}  // namespace quire::jinja
