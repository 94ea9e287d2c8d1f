// The kernels of expanded latent attention, compiled ahead of time. This header has plain data
// only. All pointers are to device memory. The requests and tokens belong to one phase.
#pragma once

#include <cstdint>

#include "cuda/attention/flashinfer/expanded_plan.h"
#include "cuda/base/stream.h"
#include "tensor/dtype.h"

namespace quire::cuda::flashinfer_backend {

// The requests of a step.
struct ExpandedBatch {
  const int32_t* query_start = nullptr;  // [num_reqs + 1], over all tokens of the step
  const int32_t* seq_lens = nullptr;     // [num_reqs]
  const int32_t* block_table = nullptr;  // [num_reqs, max_pages]
  int64_t max_pages = 0;
  int first_token = 0;
  int num_tokens = 0;
  int num_heads = 0;
  ExpandedDims dims;
  ExpandedArrays arrays;
};

// Copies latent vectors from their pages: each row's latents once, and its rotated key once per
// head. Rows beyond a request's positions become zeros, because FA3 multiplies their values by
// weights of zero, and NaN times zero is NaN.
struct LatentGather {
  const void* cache = nullptr;  // 576 elements per position
  int64_t page_stride = 0;      // in elements
  int64_t token_stride = 0;
  const float* cache_scale = nullptr;  // of an E4M3 cache; null: 1
  int page_size = 0;
  void* latents = nullptr;  // [rows, 512]
  void* keys = nullptr;     // [rows, num_heads, dims.key]; the last 64 of each key are written
};
// The cache is BF16 or E4M3, and the copies BF16.
void launch_latent_gather(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                          const LatentGather& call, DType cache, CudaStream& stream);

// Attention of the chunk's query tokens to its rows.
struct ExpandedAttention {
  const void* q = nullptr;       // [num_tokens, num_heads, dims.key]
  const void* keys = nullptr;    // [max_rows, num_heads, dims.key]
  const void* values = nullptr;  // [max_rows, num_heads, dims.value]
  void* out = nullptr;           // [num_tokens, num_heads, dims.value]
  float* lse = nullptr;          // [num_tokens, num_heads], base 2
  int max_rows = 0;
  int num_sms = 0;
  float scale = 1.0F;
};
void launch_expanded_attention(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                               const ExpandedAttention& call, CudaStream& stream);

// Merges the results of a chunk that continues a request into out and lse. Query tokens before the
// chunk do not attend to it; their partial results are not read. The merged results are also kept
// in F32, because rounding them after each of many chunks would lose accuracy.
struct ExpandedMerge {
  void* out = nullptr;    // [num_tokens, num_heads, dims.value]
  float* sums = nullptr;  // same shape as out; the earlier results if has_sums, otherwise `out` has
                          // them
  bool has_sums = false;  // an earlier chunk of the request was merged
  float* lse = nullptr;
  const void* partial = nullptr;
  const float* partial_lse = nullptr;
  int first_token = 0;  // of the request
  int num_tokens = 0;
};
void launch_expanded_merge(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                           const ExpandedMerge& call, CudaStream& stream);

// Whether the kernels exist.
bool has_expanded_kernel(const ExpandedDims& dims);
// Loads the merge kernel, which the first prompts may not run.
cudaError_t load_expanded_merge(const ExpandedDims& dims);

}  // namespace quire::cuda::flashinfer_backend
