#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace quire::cli {

double mean(std::span<const double> values);  // 0 of nothing
// Of the population, as numpy's default.
double standard_deviation(std::span<const double> values);
// Between the two nearest values by linear interpolation, as numpy's default; percent in [0, 100].
double percentile(std::span<const double> values, double percent);

struct Percentile {
  int percent;
  double value;
};
std::vector<Percentile> percentiles(std::span<const double> values);  // 10 25 50 75 90 99

// {"mean": …, "std": …, "percentiles": {"10": …}}
void write_summary(JsonWriter& json, std::string_view name, std::span<const double> values);

}  // namespace quire::cli
