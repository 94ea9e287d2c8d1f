#include "cli/bench_serve_arrivals.h"

#include <cmath>
#include <random>

namespace quire::cli {

std::vector<double> arrival_times(const ArrivalConfig& config, int num_requests) {
  std::vector<double> times(static_cast<size_t>(num_requests), 0.0);
  if (std::isinf(config.request_rate) || times.empty()) return times;
  std::mt19937_64 random(config.seed);
  std::gamma_distribution<double> interval(config.burstiness,
                                           1.0 / (config.request_rate * config.burstiness));
  double now = 0.0;
  for (double& time : times) time = now += interval(random);
  const double stretch = num_requests / config.request_rate / now;
  if (std::isfinite(stretch)) {
    for (double& time : times) time *= stretch;
  }
  return times;
}

}  // namespace quire::cli
