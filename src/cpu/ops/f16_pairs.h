// How F16 weights lie in PanelLayout::kPairs: times 2^10, which makes every F16 below 2^6 a normal
// number or zero without losing a bit. The AMX kernel splits those in two with less work.
#pragma once

#include <cstdint>

namespace quire::cpu {

inline constexpr int kF16ScaleLog2 = 10;
inline constexpr uint16_t kF16PairLimit = 0x5400;  // 64: a magnitude from here on does not fit

}  // namespace quire::cpu
