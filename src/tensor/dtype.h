#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace quire {

// kU8: bytes that hold packed numbers.
enum class DType : uint8_t { kF32, kF16, kBF16, kF8E4M3, kI8, kI32, kI64, kU8 };

size_t dtype_bytes(DType dtype);
// Returns "f32", "f16", "bf16", "fp8_e4m3", "i8", "i32", "i64" or "u8".
std::string_view dtype_name(DType dtype);
// Accepts the names above and those of torch ("bfloat16"), safetensors ("BF16") and vLLM ("fp8").
std::optional<DType> parse_dtype(std::string_view name);

// BF16: the upper half of an F32.
inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t f32_to_bf16(float value);  // round to nearest even; NaN stays NaN

// IEEE 754 half precision, subnormals included.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);  // round to nearest even; overflow to infinity

// E4M3 of the OCP FP8 specification ("e4m3fn"): no infinities, 0x7F and 0xFF are NaN, max 448.
float e4m3_to_f32(uint8_t bits);
uint8_t f32_to_e4m3(float value);  // round to nearest even, saturating to ±448; NaN stays NaN
// The scale of a row of E4M3 numbers whose largest magnitude is `largest`, so that the largest
// becomes 448. The lower limit keeps the inverse finite.
constexpr float e4m3_scale(float largest) {
  constexpr float kMaxE4m3 = 448;
  constexpr float kMinScale = std::numeric_limits<float>::min();
  if (largest == 0) return 1;
  return largest < kMaxE4m3 * kMinScale ? kMinScale : largest / kMaxE4m3;
}

// The scale of a row of 8-bit integers whose largest magnitude is `largest`, so that the largest
// becomes 127; 0 for a row of zeros. The lower limit keeps the quotients in range. If `largest` is
// not finite, the scale is a NaN, so that the row reads as NaNs.
constexpr float i8_scale(float largest) {
  constexpr float kMaxI8 = 127;
  constexpr float kMinScale = std::numeric_limits<float>::min();
  if (largest == 0) return 0;
  if (!(largest <= std::numeric_limits<float>::max())) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return largest < kMaxI8 * kMinScale ? kMinScale : largest / kMaxI8;
}
int8_t f32_to_i8(float value, float scale);  // round to nearest even; 0 if the scale is 0 or a NaN

}  // namespace quire
