// Kernels that supplement cuDNN: its inputs for requests of any length, and zeros where it would
// read or leave NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention/cudnn/prefill_inputs.h"
#include "cuda/base/stream.h"
#include "quire/status.h"

namespace quire::cuda::cudnn {

inline constexpr int kMaxReqs = 1024;  // of one decode call

// Zeroes the output rows of decode requests of length 0. row_bytes is a multiple of 16.
void zero_padding(const int32_t* seq_lens, int num_reqs, void* out, size_t row_bytes,
                  CudaStream& stream);

// Query lengths on the device, [kMaxReqs], all 1. The first call loads them and cannot be captured.
Result<const int32_t*> single_q_lens();

// Device arrays of a call for prompts. Its number of requests is that of the plan.
struct PrefillInputs {
  int32_t* q_lens = nullptr;       // [num_reqs]
  int32_t* kv_lens = nullptr;      // [num_reqs]
  int32_t* offsets = nullptr;      // [num_reqs + 1]
  int32_t* block_table = nullptr;  // [num_reqs, table_stride]
  int64_t table_stride = 0;
};

// Derives the inputs of a call for num_reqs requests from those of the batch, which may be fewer.
// row_size: elements of a query row.
void derive_prefill_inputs(const PrefillRequests& reqs, const PrefillInputs& inputs, int num_reqs,
                           int row_size, CudaStream& stream);

// Keys and values of one layer. The slots of a page and head are contiguous, and token_bytes is a
// multiple of 16.
struct CacheMemory {
  char* k = nullptr;
  char* v = nullptr;
  int64_t page_bytes = 0, head_bytes = 0, token_bytes = 0;
};

// Zeroes the unused slots of each request's last page, and the output rows of requests of length 0.
// `out` is the first row of the batch.
void zero_unused(const PrefillRequests& reqs, const CacheMemory& cache, int num_kv_heads, void* out,
                 size_t row_bytes, CudaStream& stream);

}  // namespace quire::cuda::cudnn
