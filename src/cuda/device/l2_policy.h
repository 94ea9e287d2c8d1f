// L2 cache policies, for copies with a cache hint.
#pragma once

#include <cstdint>

namespace quire::cuda {

inline constexpr uint64_t kL2EvictNormal = 0x1000000000000000;
inline constexpr uint64_t kL2EvictFirst = 0x12F0000000000000;

}  // namespace quire::cuda
