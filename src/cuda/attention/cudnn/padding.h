// Supplements to cuDNN: zeros in the rows of padding, and an array of query lengths.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda::cudnn {

inline constexpr int kMaxReqs = 1024;

// Zeroes the output rows of requests of length 0. row_bytes is a multiple of 16.
void zero_padding(const int32_t* seq_lens, int num_reqs, void* out, size_t row_bytes,
                  CudaStream& stream);

// Query lengths on the device, [kMaxReqs], all 1. The first call loads them and cannot be captured.
Result<const int32_t*> single_q_lens();

}  // namespace quire::cuda::cudnn
