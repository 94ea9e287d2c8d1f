#include "cpu/attention/support.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn/backend.h"

namespace quire::cpu {
namespace {

void check_head_dim(const char* field, int value, std::vector<std::string>& reasons) {
  if (value >= 8 && value <= 256 && value % 8 == 0) return;
  reasons.push_back(
      fmt::format("{} is {}; it must be a multiple of 8 from 8 to 256.", field, value));
}

void check_f32(const char* field, DType value, std::vector<std::string>& reasons) {
  if (value == DType::kF32) return;
  reasons.push_back(fmt::format("{} is {}; it must be f32.", field, dtype_name(value)));
}

}  // namespace

Support attention_support(const AttentionShape& shape, const Device& device) {
  Support support{shape_faults(shape)};
  std::vector<std::string>& reasons = support.reasons;
  if (device.kind != DeviceKind::kCpu) {
    reasons.push_back(fmt::format("device is {}; it must be a CPU.",
                                  device.name.empty() ? "a GPU" : device.name));
  }
  check_head_dim("head_dim", shape.head_dim, reasons);
  check_head_dim("head_dim_v", shape.head_dim_v, reasons);
  check_f32("q", shape.q, reasons);
  check_f32("out", shape.out, reasons);
  if (shape.kv == DType::kI32 || shape.kv == DType::kI64) {
    reasons.push_back(
        fmt::format("kv is {}; it must be f32, f16, bf16 or fp8_e4m3.", dtype_name(shape.kv)));
  }
  return support;
}

VisibleRange visible_range(const AttentionShape& shape, int kv_len, int q_len, int query_idx) {
  if (!shape.causal) return {0, std::max(0, kv_len)};
  // The position of a padded request (length 0) would be negative.
  const int end = std::max(0, kv_len - q_len + query_idx + 1);
  const int first = shape.window > 0 ? std::max(0, end - shape.window) : 0;
  return {first, end};
}

}  // namespace quire::cpu
