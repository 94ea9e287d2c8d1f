// How F16 weights lie in PanelLayout::kPairs: a sign, 5 bits of exponent and 10 of significand as
// in F16, but of another bias, which makes every F16 below 2^5 a normal number or zero without
// losing a bit. The AMX kernel splits those in two with little work.
#pragma once

#include <bit>
#include <cstdint>

namespace quire::cpu {

inline constexpr int kF16PairBias = 27;            // F16's own is 15
inline constexpr uint16_t kF16PairLimit = 0x5000;  // 32: a magnitude from here on does not fit

inline float f16_pair_to_f32(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude == 0) return std::bit_cast<float>(sign);
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127U - kF16PairBias) << 23)));
}

}  // namespace quire::cpu
