// The parts that all measurements share: callbacks while they run, and statistics of their values.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"

namespace quire::bench {

// The callbacks of a measurement: it reports its progress, and can be interrupted.
struct Hooks {
  using Note = std::function<std::string()>;

  // Polled; returning true ends the measurement.
  std::function<bool()> interrupted = [] { return false; };
  // Called as the work advances. The callee evaluates `note` only when it shows it.
  std::function<void(size_t num_done, size_t num_total, const Note& note)> on_progress =
      [](size_t, size_t, const Note&) {};
};

inline double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double mean(std::span<const double> values);  // 0 if empty
// The population standard deviation, which is also numpy's default.
double standard_deviation(std::span<const double> values);
// Interpolates linearly between the two nearest values, as numpy does by default; percent is in [0,
// 100].
double percentile(std::span<const double> values, double percent);

struct Percentile {
  int percent;
  double value;
};
// Returns the percentiles 10, 25, 50, 75, 90 and 99.
std::vector<Percentile> percentiles(std::span<const double> values);
// Writes {"10": …, "25": …} as the field "percentiles".
void write_percentiles(JsonWriter& json, std::span<const double> values);
// Writes {"mean": …, "std": …, "percentiles": {"10": …}} as the field `name`.
void write_summary(JsonWriter& json, std::string_view name, std::span<const double> values);

}  // namespace quire::bench
