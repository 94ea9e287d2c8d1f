// Writes zeros where cuDNN's attention would leave NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda::cudnn {

// Zeroes the output rows of requests of length 0. query_start: [num_reqs + 1], or null if each
// request has one row. `out` is the first request's first row; row_bytes is a multiple of 16.
void zero_padding(const int32_t* seq_lens, const int32_t* query_start, int num_reqs, void* out,
                  size_t row_bytes, CudaStream& stream);

}  // namespace quire::cuda::cudnn
