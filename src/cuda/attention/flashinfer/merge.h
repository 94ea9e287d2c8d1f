// Merges the chunks' partial results of FlashInfer's kernel.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"
#include "tensor/dtype.h"

namespace quire::cuda::flashinfer_backend {

// Arguments of a merge, with device pointers. Requests and tokens are those of one phase.
struct MergeCall {
  const void* partials = nullptr;      // [partial rows, num_heads, head_dim]
  const float* partial_lse = nullptr;  // [partial rows, num_heads], base 2
  void* out = nullptr;                 // [all tokens, num_heads, head_dim]
  const int32_t* query_start = nullptr;
  const int32_t* seq_lens = nullptr;
  const int32_t* partial_start = nullptr;
  const int32_t* chunk_tokens = nullptr;
  int first_token = 0;
  int num_tokens = 0;
  int num_reqs = 0;
  int num_heads = 0;
  int head_dim = 0;  // 64, 128 or 256
  int window = 0;
  int tile_rows = 0;
};

void launch_merge(const MergeCall& call, DType dtype, CudaStream& stream);

}  // namespace quire::cuda::flashinfer_backend
