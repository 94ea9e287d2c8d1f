// The encoding of F16 weights in PanelLayout::kPairs: 1 sign, 5 exponent and 10 significand bits as
// in F16, but with another exponent bias, so that every F16 below 2^5 becomes a normal number or
// zero without losing a bit. The AMX kernel splits such numbers into two BF16 with little work.
#pragma once

#include <bit>
#include <cstdint>

namespace quire::cpu {

inline constexpr int kF16PairBias = 27;            // the bias of F16 itself is 15
inline constexpr uint16_t kF16PairLimit = 0x5000;  // 32: magnitudes from this on do not fit

inline float f16_pair_to_f32(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude == 0) return std::bit_cast<float>(sign);
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127U - kF16PairBias) << 23)));
}

}  // namespace quire::cpu
