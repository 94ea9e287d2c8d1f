#include "quantize/int4_groups.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace quire {
namespace {

float smallest_positive(DType dtype) {
  if (dtype == DType::kF16) return 0x1p-24F;
  return dtype == DType::kBF16 ? 0x1p-133F : std::numeric_limits<float>::denorm_min();
}

double rounding_error(std::span<const float> group, std::span<const float> importance, float scale,
                      std::span<float> integers) {
  round_to_int4(group, scale, integers.data());
  double error = 0.0;
  for (size_t i = 0; i < group.size(); ++i) {
    const double difference = double{integers[i]} * scale - group[i];
    error += importance[i] * difference * difference;
  }
  return error;
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

float best_int4_scale(std::span<const float> group, std::span<const float> importance, DType dtype,
                      std::byte* out) {
  const float largest = int4_scale(group, dtype, out);
  if (importance.empty()) return largest;
  std::vector<float> integers(group.size());
  float best = largest;
  double least = rounding_error(group, importance, largest, integers);
  for (int step = -2; step <= 11; ++step) {
    const float factor = 1.0F - static_cast<float>(step) / 32.0F;
    const float scale = store_number(largest * factor, dtype, out);
    const double error = rounding_error(group, importance, scale, integers);
    if (scale > 0 && error < least) {
      least = error;
      best = scale;
    }
  }
  return store_number(best, dtype, out);
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
