// Adds one array to another, such as a drafter's transitions to its logits.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda {

// x[i] += summands[i], for i < count. Both are device memory and do not overlap.
void launch_add(float* x, const float* summands, int64_t count, CudaStream& stream);

}  // namespace quire::cuda
