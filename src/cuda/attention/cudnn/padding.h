// What cuDNN leaves to us: a row of padding is to be zeros, and every request has a query length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda::cudnn {

inline constexpr int kMaxReqs = 1024;

// Zeroes the rows of requests of length 0, of row_bytes each, a multiple of 16.
void zero_padding(const int32_t* seq_lens, int num_reqs, void* out, size_t row_bytes,
                  CudaStream& stream);

// On the device, [kMaxReqs], all 1. The first call loads them, outside of a capture.
Result<const int32_t*> single_q_lens();

}  // namespace quire::cuda::cudnn
