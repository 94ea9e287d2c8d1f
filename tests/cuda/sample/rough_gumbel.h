// The bounds of RoughRace (cuda/sample/race.cuh) against the exact score.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda {

struct RoughGumbelErrors {
  unsigned long long count;
  uint32_t first_bits;  // the lowest whose score lies outside of its bounds
};

// Counts, into `errors` (device), the random bits of [first, first + count) whose score RoughRace
// bounds wrongly.
void launch_check_bits(uint64_t first, uint64_t count, float logit, float temperature,
                       RoughGumbelErrors* errors, CudaStream& stream);

}  // namespace quire::cuda
