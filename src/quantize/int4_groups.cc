#include "quantize/int4_groups.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace quire {
namespace {

float smallest_positive(DType dtype) {
  if (dtype == DType::kF16) return 0x1p-24F;
  return dtype == DType::kBF16 ? 0x1p-133F : std::numeric_limits<float>::denorm_min();
}

}  // namespace

float store_number(float value, DType dtype, std::byte* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, &value, sizeof(value));
    return value;
  }
  const bool is_f16 = dtype == DType::kF16;
  const uint16_t bits = is_f16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(out, &bits, sizeof(bits));
  return is_f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

float int4_scale(std::span<const float> group, DType dtype, std::byte* out) {
  float largest = 0;
  for (const float x : group) largest = std::max(largest, std::abs(x));
  const float scale = store_number(largest / kInt4HalfRange, dtype, out);
  if (scale > 0) return scale;
  return store_number(largest > 0 ? smallest_positive(dtype) : 1, dtype, out);
}

void round_to_int4(std::span<const float> group, float scale, float* out) {
  // At this magnitude the distance of two floats is 1, so that the addition rounds to an integer,
  // ties to even. Unlike std::nearbyint, it is compiled to vectors for any x86-64.
  constexpr float kUnit = 0x1.8p23F;
  for (size_t i = 0; i < group.size(); ++i) {
    const float clamped = std::clamp(group[i] / scale, kInt4Least, kInt4Most);
    out[i] = clamped + kUnit - kUnit;
  }
}

}  // namespace quire
