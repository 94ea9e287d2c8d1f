// The parameters of this backend's kernels: plain data, passed by value.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace quire::cuda::native {

// A row is one query token of one head. Rows of a request that share a KV head are packed token by
// token: packed row i is query token i / group and head kv_head * group + i % group.
struct Params {
  const void* q = nullptr;
  void* out = nullptr;
  const float* sinks = nullptr;  // null: none
  const void* k = nullptr;
  const void* v = nullptr;
  const float* k_scale = nullptr;  // null: 1
  const float* v_scale = nullptr;
  // In elements of the cache.
  int64_t page_stride_k = 0, head_stride_k = 0, token_stride_k = 0;
  int64_t page_stride_v = 0, head_stride_v = 0, token_stride_v = 0;

  const int32_t* query_start = nullptr;
  const int32_t* seq_lens = nullptr;
  const int32_t* block_table = nullptr;
  int64_t max_pages = 0;

  DType q_dtype = DType::kF32;  // also of out
  int first_req = 0;
  int num_reqs = 0;
  int first_token = 0;
  int num_tokens = 0;
  int num_heads = 0;
  int group = 1;  // query heads per KV head
  int head_dim = 0;
  int head_dim_v = 0;
  int page_shift = 4;  // log2 of the page size
  int window = 0;
  bool causal = true;
  float scale = 1.0F;
  float softcap = 0.0F;

  // With more than one split, a kernel writes the partial result of its span of positions, and
  // merge_splits merges them into rows: [num_tokens * num_heads, num_splits] each.
  int num_splits = 1;
  float* partial_out = nullptr;  // [..., head_dim_v], not normalized
  float* partial_max = nullptr;  // of the logits, in log2 units; -infinity: no positions
  float* partial_sum = nullptr;
};

}  // namespace quire::cuda::native
