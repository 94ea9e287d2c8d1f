// The exact scalar definitions of the small float formats. Fast paths convert with vector
// instructions and must give the same bits.
#pragma once

#include <bit>
#include <cstdint>

namespace quire {

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

}  // namespace quire
