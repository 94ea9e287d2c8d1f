// The kernels for latent caches, compiled ahead of time. This header has plain data only.
#pragma once

#include <cstdint>

#include "cuda/attention/flashinfer/latent_plan.h"
#include "cuda/base/stream.h"
#include "tensor/dtype.h"

namespace quire::cuda::flashinfer_backend {

// Arguments of a launch, with device pointers. The requests belong to one phase.
struct LatentCall {
  const void* q = nullptr;       // [all tokens, num_heads, 576]
  void* out = nullptr;           // [all tokens, num_heads, 512]
  void* partial_out = nullptr;   // [max_latent_partial_rows, 512], of the type of q
  float* partial_lse = nullptr;  // [max_latent_partial_rows], base 2
  const void* cache = nullptr;   // 576 elements per position
  uint32_t page_stride = 0;      // in elements
  uint32_t token_stride = 0;
  const float* cache_scale = nullptr;    // of an FP8 cache; null: 1
  const int32_t* query_start = nullptr;  // [num_reqs + 1]
  const int32_t* seq_lens = nullptr;     // [num_reqs]
  const int32_t* block_table = nullptr;  // [num_reqs, max_pages]
  int max_pages = 0;
  int num_heads = 0;
  int page_size = 0;
  int page_shift = 0;  // log2 of the page size
  float scale = 1.0F;
  LatentGrid grid;
  LatentArrays arrays;
};

// The cache has the type of q, which is BF16 or F16, or is E4M3 with BF16 queries.
bool has_latent_kernel(DType q, DType cache);
void launch_latent(const LatentCall& call, DType q, DType cache, CudaStream& stream);
// Called by launch_latent for LatentKernel::kDecode.
void launch_latent_decode(const LatentCall& call, DType q, DType cache, CudaStream& stream);

}  // namespace quire::cuda::flashinfer_backend
