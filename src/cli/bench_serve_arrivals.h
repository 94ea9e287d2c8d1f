#pragma once

#include <cstdint>
#include <vector>

namespace quire::cli {

struct ArrivalConfig {
  double request_rate = 0.0;  // a second, or infinity: all at once
  double burstiness = 1.0;    // the shape of gamma: 1 is Poisson's process, smaller is burstier
  uint64_t seed = 0;
};

// Seconds from the start at which each of the requests is due, rising. As in vLLM: intervals are
// drawn from a gamma distribution of mean 1 / request_rate, then stretched so that the last comes
// at num_requests / request_rate.
std::vector<double> arrival_times(const ArrivalConfig& config, int num_requests);

}  // namespace quire::cli
