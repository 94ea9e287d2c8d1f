#include "bench/measurement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quire::bench {
namespace {

double percentile_of_sorted(std::span<const double> sorted, double percent) {
  if (sorted.empty()) return 0.0;
  const double rank = percent / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double fraction = rank - static_cast<double>(below);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  const double center = mean(values);
  std::vector<double> squares;
  for (const double value : values) squares.push_back((value - center) * (value - center));
  return std::sqrt(mean(squares));
}

double percentile(std::span<const double> values, double percent) {
  return percentile_of_sorted(sorted_copy(values), percent);
}

std::vector<Percentile> percentiles(std::span<const double> values) {
  const std::vector<double> sorted = sorted_copy(values);
  std::vector<Percentile> all;
  for (const int percent : {10, 25, 50, 75, 90, 99}) {
    all.push_back({percent, percentile_of_sorted(sorted, percent)});
  }
  return all;
}

void write_percentiles(JsonWriter& json, std::span<const double> values) {
  json.key("percentiles");
  json.begin_object();
  for (const auto& [percent, value] : percentiles(values)) {
    json.field(std::to_string(percent), value);
  }
  json.end_object();
}

void write_summary(JsonWriter& json, std::string_view name, std::span<const double> values) {
  json.key(name);
  json.begin_object();
  json.field("mean", mean(values));
  json.field("std", standard_deviation(values));
  write_percentiles(json, values);
  json.end_object();
}

}  // namespace quire::bench
