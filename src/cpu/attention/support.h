// The shapes and visible ranges that both CPU backends share; the backends differ only in speed.
#pragma once

#include "attn/backend.h"

namespace quire::cpu {

// The kernels compute any multiple of 8; the tests cover sizes up to this bound.
inline constexpr int kMaxAttentionDim = 1024;

// Both backends support any GQA ratio; head_dim and head_dim_v that are multiples of 8 up to
// kMaxAttentionDim; latent caches; q and out in F32; K and V in F32, F16, BF16, FP8-e4m3 or 8-bit
// integers; causal or not; windows, soft caps and sinks.
Support attention_support(const AttentionShape& shape, const Device& device);

// The positions [first, end) to which query `query_idx` of a request attends; empty for padding.
struct VisibleRange {
  int first = 0;
  int end = 0;
};
VisibleRange visible_range(const AttentionShape& shape, int kv_len, int q_len, int query_idx);

}  // namespace quire::cpu
