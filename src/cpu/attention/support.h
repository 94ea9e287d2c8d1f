// What both CPU backends take: they differ in speed only.
#pragma once

#include "attn/backend.h"

namespace quire::cpu {

// Both serve any GQA ratio; head_dim and head_dim_v multiples of 8 from 8 to 256; q and out F32; K
// and V in F32, F16, BF16 or FP8-e4m3; causal or not, window, soft cap, sinks.
Support attention_support(const AttentionShape& shape, const Device& device);

// The positions [first, end) that query `query_idx` of a request sees. Empty for padding.
struct VisibleRange {
  int first = 0;
  int end = 0;
};
VisibleRange visible_range(const AttentionShape& shape, int kv_len, int q_len, int query_idx);

}  // namespace quire::cpu
