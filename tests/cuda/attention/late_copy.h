// A kernel that lets its successor start early, and writes long after that.
#pragma once

#include <cstddef>

#include "cuda/base/stream.h"

namespace quire::testing {

// Waits for 200 µs, then copies num_bytes, a multiple of 4.
void launch_late_copy(cuda::CudaStream& stream, void* target, const void* source, size_t num_bytes);

}  // namespace quire::testing
