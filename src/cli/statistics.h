#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace quire::cli {

double mean(std::span<const double> values);  // 0 if empty
// The population standard deviation, as numpy's default.
double standard_deviation(std::span<const double> values);
// Interpolates linearly between the two nearest values, as numpy's default; percent in [0, 100].
double percentile(std::span<const double> values, double percent);

struct Percentile {
  int percent;
  double value;
};
std::vector<Percentile> percentiles(std::span<const double> values);  // 10 25 50 75 90 99

// Writes {"mean": …, "std": …, "percentiles": {"10": …}} as the field `name`.
void write_summary(JsonWriter& json, std::string_view name, std::span<const double> values);

}  // namespace quire::cli
