// Checks the keywords that restrict numbers, and rounds the bounds of integers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/text.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;

// XGrammar enforces multipleOf up to these bounds.
constexpr int64_t kMaxMultipleOf = 1024;
constexpr uint64_t kMaxRangeOfMultiples = 10'000;

constexpr std::array<std::string_view, 4> kBounds = {"minimum", "maximum", "exclusiveMinimum",
                                                     "exclusiveMaximum"};

std::string text_of(element value) {
  return clipped(std::string(simdjson::minify(value)));
}

Status must_be(std::string_view keyword, std::string_view expected, element value) {
  return invalid_argument(fmt::format("[grammar] the JSON schema's \"{}\" must be {}; got {}",
                                      keyword, expected, text_of(value)));
}

// The bound as an integer that allows the same integers: 2 for a minimum of 1.5.
Result<int64_t> integer_bound(std::string_view keyword, element value) {
  int64_t number = 0;
  if (!value.get_int64().get(number)) return number;
  const Status out_of_range = must_be(
      keyword, fmt::format("from {} to {} with the \"type\" \"integer\"", INT64_MIN, INT64_MAX),
      value);
  if (!value.is_double()) return out_of_range;
  const double bound = value.get_double().value_unsafe();
  const bool rounds_up = keyword == "minimum" || keyword == "exclusiveMaximum";
  const double rounded = rounds_up ? std::ceil(bound) : std::floor(bound);
  constexpr double kLimit = 0x1p63;
  if (rounded < -kLimit || rounded >= kLimit) return out_of_range;
  return static_cast<int64_t>(rounded);
}

// The bounds of a schema by keyword. In draft 4, a true "exclusiveMinimum" makes the "minimum"
// beside it exclusive, and false has no effect.
Result<Members> bounds_of(const Members& members) {
  Members bounds;
  for (const std::string_view keyword : kBounds) {
    const auto found = members.find(keyword);
    if (found != members.end() && !found->second.is_bool()) bounds.emplace(*found);
  }
  for (const auto& [exclusive, inclusive] :
       {std::pair("exclusiveMinimum", "minimum"), std::pair("exclusiveMaximum", "maximum")}) {
    const auto found = members.find(exclusive);
    bool is_exclusive = false;
    if (found == members.end() || found->second.get_bool().get(is_exclusive) || !is_exclusive) {
      continue;
    }
    const auto bound = bounds.find(inclusive);
    if (bound == bounds.end()) {
      return not_supported(fmt::format("\"{}\" true without a \"{}\"", exclusive, inclusive),
                           fmt::format("write the bound itself, as in \"{}\": 0", exclusive));
    }
    const element value = bound->second;
    bounds.erase(bound);
    bounds.emplace(exclusive, value);
  }
  return bounds;
}

// The bounds of integers, both inclusive.
struct IntegerRange {
  int64_t lowest = std::numeric_limits<int64_t>::min();
  int64_t highest = std::numeric_limits<int64_t>::max();
  bool has_lowest = false;
  bool has_highest = false;

  void restrict_to(std::string_view keyword, int64_t bound) {
    if (keyword == "minimum" || keyword == "exclusiveMinimum") {
      const bool is_next = keyword != "minimum" && bound < std::numeric_limits<int64_t>::max();
      lowest = std::max(lowest, is_next ? bound + 1 : bound);
      has_lowest = true;
    } else {
      const bool is_next = keyword != "maximum" && bound > std::numeric_limits<int64_t>::min();
      highest = std::min(highest, is_next ? bound - 1 : bound);
      has_highest = true;
    }
  }
};

// Fails if the bounds leave no number. Bounds that are doubles are compared as XGrammar does.
Status check_bounds(const Members& members, const IntegerRange* integers) {
  const auto bound = [&](std::string_view keyword) {
    const auto found = members.find(keyword);
    return found == members.end() ? nullptr : &found->second;
  };
  for (const std::string_view low : {"minimum", "exclusiveMinimum"}) {
    for (const std::string_view high : {"maximum", "exclusiveMaximum"}) {
      const element* const least = bound(low);
      const element* const most = bound(high);
      if (least == nullptr || most == nullptr) continue;
      const double from = least->get_double().value_unsafe();
      const double to = most->get_double().value_unsafe();
      const bool is_inclusive = low == "minimum" && high == "maximum";
      const bool is_empty = integers != nullptr ? integers->lowest > integers->highest
                            : is_inclusive      ? from > to
                                                : from >= to;
      if (is_empty) return empty_range(low, text_of(*least), high, text_of(*most));
    }
  }
  return {};
}

Result<int64_t> multiple_of(element value, const IntegerRange& range) {
  const double number =
      value.is_double() ? value.get_double().value_unsafe()
                        : (value.is_int64() ? static_cast<double>(value.get_int64().value_unsafe())
                                            : static_cast<double>(kMaxMultipleOf + 1));
  if (number < 1 || number > kMaxMultipleOf || number != std::floor(number)) {
    return must_be("multipleOf", fmt::format("an integer from 1 to {}", kMaxMultipleOf), value);
  }
  const bool is_open = range.has_lowest != range.has_highest;
  const uint64_t span = static_cast<uint64_t>(range.highest) - static_cast<uint64_t>(range.lowest);
  const bool is_wide = range.has_lowest && range.has_highest && range.lowest <= range.highest &&
                       span >= kMaxRangeOfMultiples;
  if (is_open || is_wide) {
    return not_supported(fmt::format(
        "\"multipleOf\" beside \"minimum\" or \"maximum\" without a range of at most {} integers",
        kMaxRangeOfMultiples));
  }
  const auto divisor = static_cast<int64_t>(number);
  if (range.has_lowest && range.has_highest) {
    const int64_t after = range.lowest % divisor;
    const int64_t to_next = after == 0 ? 0 : after > 0 ? divisor - after : -after;
    if (to_next > range.highest - range.lowest) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has \"multipleOf\" {} beside bounds without a "
                      "multiple of it; expected bounds from {} to {} with one",
                      divisor, range.lowest, range.highest));
    }
  }
  return divisor;
}

}  // namespace

Result<std::vector<KeywordField>> number_fields(const Members& members, bool is_integer) {
  QUIRE_ASSIGN_OR_RETURN(const Members bounds, bounds_of(members));
  std::vector<KeywordField> fields;
  IntegerRange range;
  for (const std::string_view keyword : kBounds) {
    const auto found = bounds.find(keyword);
    if (found == bounds.end()) continue;
    if (!found->second.is_number()) return must_be(keyword, "a number", found->second);
    if (is_integer) {
      QUIRE_ASSIGN_OR_RETURN(const int64_t bound, integer_bound(keyword, found->second));
      range.restrict_to(keyword, bound);
      fields.push_back({.keyword = keyword, .json = std::to_string(bound)});
    } else {
      fields.push_back({.keyword = keyword, .json = std::string(simdjson::minify(found->second))});
    }
  }
  QUIRE_RETURN_IF_ERROR(check_bounds(bounds, is_integer ? &range : nullptr));
  const auto found = members.find("multipleOf");
  if (found == members.end()) return fields;
  if (!found->second.is_number()) return must_be("multipleOf", "a number", found->second);
  if (!is_integer) {
    return not_supported("\"multipleOf\" with the \"type\" \"number\" instead of \"integer\"");
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t divisor, multiple_of(found->second, range));
  fields.push_back({.keyword = "multipleOf", .json = std::to_string(divisor)});
  return fields;
}

}  // namespace quire::grammar
