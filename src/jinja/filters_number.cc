// Filters that return numbers.
#include <fmt/format.h>

#include <cmath>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/string_literal.h"

namespace quire::jinja {

namespace {

using Run = Interpreter&;

Value truncated(double number) {
  if (std::isnan(number)) fail("cannot convert float NaN to integer");
  if (std::isinf(number)) fail("cannot convert float infinity to integer");
  if (std::fabs(number) >= 9223372036854775808.0) fail("an integer is beyond 64 bits");
  return Value::integer(static_cast<int64_t>(number));
}

Value int_filter(Run run, const Value& self, const Bound& args) {
  const Value otherwise = args[0] == nullptr ? Value::integer(0) : args.value(0);
  if (self.is_undefined()) fail(self.undefined_reason());
  if (self.is_integral()) return Value::integer(self.as_int());
  if (self.is_float()) return std::isnan(self.as_float()) ? otherwise : truncated(self.as_float());
  if (!self.is_string()) return otherwise;
  run.budget.read(self.as_string().size());
  const int64_t base = args.integer(1, 10);
  if (base >= 0 && base <= 36 && base != 1) {
    if (const auto number = parse_int(self.as_string(), static_cast<int>(base))) {
      return Value::integer(*number);
    }
  }
  const std::optional<double> number = parse_float(self.as_string());
  return number && std::isfinite(*number) ? truncated(*number) : otherwise;
}

Value float_filter(Run run, const Value& self, const Bound& args) {
  if (self.is_undefined()) fail(self.undefined_reason());
  if (self.is_number()) return Value::real(self.as_float());
  if (self.is_string()) {
    run.budget.read(self.as_string().size());
    if (const std::optional<double> number = parse_float(self.as_string())) {
      return Value::real(*number);
    }
  }
  return args[0] == nullptr ? Value::real(0) : args.value(0);
}

Value abs_filter(Run, const Value& self, const Bound&) {
  if (self.is_float()) return Value::real(std::fabs(self.as_float()));
  if (self.is_undefined()) fail(self.undefined_reason());
  if (!self.is_integral()) fail(fmt::format("bad operand type for abs(): '{}'", self.type_name()));
  return self.as_int() < 0 ? negate(self, true) : Value::integer(self.as_int());
}

// Rounds half to even, based on the exact decimal value of the double.
double round_half_even(double number, int64_t precision) {
  if (!std::isfinite(number) || precision > 330) return number;
  if (precision < -310) return std::copysign(0.0, number);
  if (precision >= 0) {
    return std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(number / unit) * unit;
}

int64_t round_integer(int64_t number, int64_t precision) {
  if (precision >= 0) return number;
  if (precision < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  int64_t quotient = number / unit;
  int64_t rest = number % unit;
  if (rest < 0) {
    rest += unit;
    --quotient;
  }
  if (rest > unit - rest || (rest == unit - rest && quotient % 2 != 0)) ++quotient;
  int64_t result = 0;
  if (__builtin_mul_overflow(quotient, unit, &result)) fail("an integer is beyond 64 bits");
  return result;
}

Value round_filter(Run, const Value& self, const Bound& args) {
  const int64_t precision = args.integer(0);
  const std::string method = args[1] == nullptr ? "common" : args.text(1);
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("method must be common, ceil or floor");
  }
  if (self.is_undefined()) fail(self.undefined_reason());
  if (!self.is_number()) {
    fail(fmt::format("type {} doesn't define __round__ method", self.type_name()));
  }
  if (method == "common") {
    if (self.is_integral()) return Value::integer(round_integer(self.as_int(), precision));
    return Value::real(round_half_even(self.as_float(), precision));
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.as_float() * unit;
  if (!std::isfinite(scaled)) fail("cannot convert float infinity or NaN to integer");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

constexpr Builtin kFilters[] = {
    {"abs", "", abs_filter},
    {"float", "| default", float_filter},
    {"int", "| default base", int_filter},
    {"round", "| precision method", round_filter},
};

}  // namespace

std::span<const Builtin> number_filters() {
  return kFilters;
}

}  // namespace quire::jinja
