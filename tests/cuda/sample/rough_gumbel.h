// Compares the bounds of RoughGumbel (cuda/sample/gumbel.cuh) with the exact score.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda {

struct RoughGumbelErrors {
  unsigned long long count;
  uint32_t first_bits;  // the lowest bits whose score is out of bounds
};

// Counts in `errors` (device) the random bits in [first, first + count) whose exact score is
// outside of RoughGumbel's bounds.
void launch_check_bits(uint64_t first, uint64_t count, float logit, float temperature,
                       RoughGumbelErrors* errors, CudaStream& stream);

}  // namespace quire::cuda
