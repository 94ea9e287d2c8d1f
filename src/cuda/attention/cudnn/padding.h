// Kernels that supplement cuDNN: its inputs for requests of any length, and zeros where it would
// leave NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/cudnn/prefill_inputs.h"
#include "cuda/base/stream.h"
#include "quire/status.h"

namespace quire::cuda::cudnn {

inline constexpr int kMaxReqs = 1024;  // of one decode call

// Zeroes the output rows of requests of length 0. query_start: [num_reqs + 1], or null if each
// request has one row. `out` is the first request's first row; row_bytes is a multiple of 16.
void zero_padding(const int32_t* seq_lens, const int32_t* query_start, int num_reqs, void* out,
                  size_t row_bytes, CudaStream& stream);

// Query lengths on the device, [kMaxReqs], all 1. The first call loads them and cannot be captured.
Result<const int32_t*> single_q_lens();

// Device arrays of a call for prompts. Its number of requests is that of the plan, which may be
// more than the part has.
struct PrefillInputs {
  int32_t* q_lens = nullptr;         // [num_reqs]
  int32_t* kv_lens = nullptr;        // [num_reqs]
  int32_t* q_offsets = nullptr;      // [num_reqs + 1], in elements
  int32_t* kv_offsets = nullptr;     // [num_reqs + 1], in elements of the scratch
  int32_t* scratch_start = nullptr;  // [requests of the part], in positions
};

// Derives the inputs of a call for num_reqs requests from those of the part. row_size and
// kv_row_size: elements of a token's queries and of its keys.
void derive_prefill_inputs(const PrefillRequests& reqs, const PrefillInputs& inputs, int num_reqs,
                           int row_size, int kv_row_size, CudaStream& stream);

}  // namespace quire::cuda::cudnn
