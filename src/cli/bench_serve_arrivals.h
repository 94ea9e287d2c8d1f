#pragma once

#include <cstdint>
#include <vector>

namespace quire::cli {

struct ArrivalConfig {
  double request_rate = 0.0;  // requests per second, or infinity: all at once
  double burstiness = 1.0;    // shape of the gamma distribution: 1 is Poisson, smaller is burstier
  uint64_t seed = 0;
};

// The times in seconds from the start at which requests are due, in ascending order. As in vLLM,
// intervals are drawn from a gamma distribution with mean 1 / request_rate, then scaled so that the
// last request is due at num_requests / request_rate.
std::vector<double> arrival_times(const ArrivalConfig& config, int num_requests);

}  // namespace quire::cli
