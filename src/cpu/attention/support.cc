#include "cpu/attention/support.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn/requirements.h"

namespace quire::cpu {
Support attention_support(const AttentionShape& shape, const Device& device) {
  Requirements needs(shape);
  needs.require(
      device.kind == DeviceKind::kCpu,
      fmt::format("device is {}; it must be a CPU.", device.name.empty() ? "a GPU" : device.name));
  needs.require_head_dims(shape, kMaxAttentionDim);
  needs.require(shape.q == DType::kF32,
                fmt::format("q is {}; it must be f32.", dtype_name(shape.q)));
  needs.require(shape.out == DType::kF32,
                fmt::format("out is {}; it must be f32.", dtype_name(shape.out)));
  needs.require_cache(shape);
  return needs.support;
}

VisibleRange visible_range(const AttentionShape& shape, int kv_len, int q_len, int query_idx) {
  if (!shape.causal) return {0, std::max(0, kv_len)};
  // Clamps, because the position in a padded request (length 0) would be negative.
  const int end = std::max(0, kv_len - q_len + query_idx + 1);
  if (shape.window == 0 || end == 0) return {0, end};
  const int chunk = (end - 1) / shape.window * shape.window;
  return {shape.chunked ? chunk : std::max(0, end - shape.window), end};
}

}  // namespace quire::cpu
