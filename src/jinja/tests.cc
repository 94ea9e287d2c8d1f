// The tests, which follow `is`.
#include <fmt/format.h>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/unicode.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;

template <bool (Value::*kIs)() const>
Value is(Run, const Value& self, const Bound&) {
  return Value::boolean((self.*kIs)());
}

Value defined(Run, const Value& self, const Bound&) {
  return Value::boolean(!self.is_undefined());
}
Value is_true(Run, const Value& self, const Bound&) {
  return Value::boolean(self.is_bool() && self.as_bool());
}
Value is_false(Run, const Value& self, const Bound&) {
  return Value::boolean(self.is_bool() && !self.as_bool());
}

Value remainder_is(Run run, const Value& self, int64_t divisor, int64_t wanted) {
  const Value rest = apply_binary(run, BinaryOp::kMod, self, Value::integer(divisor));
  return Value::boolean(equal(rest, Value::integer(wanted), &run.budget));
}
Value odd(Run run, const Value& self, const Bound&) {
  return remainder_is(run, self, 2, 1);
}
Value even(Run run, const Value& self, const Bound&) {
  return remainder_is(run, self, 2, 0);
}
Value divisibleby(Run run, const Value& self, const Bound& args) {
  const Value rest = apply_binary(run, BinaryOp::kMod, self, args.value(0));
  return Value::boolean(equal(rest, Value::integer(0), &run.budget));
}

template <CompareOp kOp>
Value compares(Run run, const Value& self, const Bound& args) {
  return Value::boolean(compare(run, kOp, self, args.value(0)));
}

Value sameas(Run, const Value& self, const Bound& args) {
  return Value::boolean(identical(self, args.value(0)));
}
Value iterable(Run, const Value& self, const Bound&) {
  return Value::boolean(is_iterable(self));
}
Value sequence(Run, const Value& self, const Bound&) {
  return Value::boolean(self.is_undefined() || self.is_string() || self.is_sequence() ||
                        self.is_dict() || self.object_as<Range>() != nullptr);
}
Value callable(Run, const Value& self, const Bound&) {
  return Value::boolean((self.is_object() && self.object()->callable()) || self.is_undefined());
}
Value escaped(Run, const Value& self, const Bound&) {
  return Value::boolean(self.is_string() && self.text()->markup);
}
Value is_lower(Run run, const Value& self, const Bound&) {
  return Value::boolean(classify_text(run.budget, "islower", to_str(self, run.budget)));
}
Value is_upper(Run run, const Value& self, const Bound&) {
  return Value::boolean(classify_text(run.budget, "isupper", to_str(self, run.budget)));
}
template <const Builtin* (*kFind)(std::string_view)>
Value exists(Run run, const Value& self, const Bound&) {
  if (!self.is_string()) return Value::boolean(false);
  run.budget.read(self.as_string().size());
  return Value::boolean(kFind(self.as_string()) != nullptr);
}

constexpr Builtin kTests[] = {
    {"boolean", "", is<&Value::is_bool>},
    {"callable", "", callable},
    {"defined", "", defined},
    {"divisibleby", "num", divisibleby},
    {"escaped", "", escaped},
    {"even", "", even},
    {"false", "", is_false},
    {"filter", "", exists<find_filter>},
    {"float", "", is<&Value::is_float>},
    {"in", "seq", compares<CompareOp::kIn>},
    {"integer", "", is<&Value::is_int>},
    {"iterable", "", iterable},
    {"lower", "", is_lower},
    {"mapping", "", is<&Value::is_dict>},
    {"none", "", is<&Value::is_none>},
    {"number", "", is<&Value::is_number>},
    {"odd", "", odd},
    {"sameas", "other", sameas},
    {"sequence", "", sequence},
    {"string", "", is<&Value::is_string>},
    {"test", "", exists<find_test>},
    {"true", "", is_true},
    {"undefined", "", is<&Value::is_undefined>},
    {"upper", "", is_upper},
    {"==", "other", compares<CompareOp::kEq>},
    {"eq", "other", compares<CompareOp::kEq>},
    {"equalto", "other", compares<CompareOp::kEq>},
    {"!=", "other", compares<CompareOp::kNe>},
    {"ne", "other", compares<CompareOp::kNe>},
    {">", "other", compares<CompareOp::kGt>},
    {"gt", "other", compares<CompareOp::kGt>},
    {"greaterthan", "other", compares<CompareOp::kGt>},
    {">=", "other", compares<CompareOp::kGe>},
    {"ge", "other", compares<CompareOp::kGe>},
    {"<", "other", compares<CompareOp::kLt>},
    {"lt", "other", compares<CompareOp::kLt>},
    {"lessthan", "other", compares<CompareOp::kLt>},
    {"<=", "other", compares<CompareOp::kLe>},
    {"le", "other", compares<CompareOp::kLe>},
};

}  // namespace

std::span<const Builtin> tests() {
  return kTests;
}

}  // namespace quire::jinja
