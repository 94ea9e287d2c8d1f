#pragma once

#include <immintrin.h>

namespace quire {

// One round of a busy wait: tells the core that its sibling may have the execution units.
inline void cpu_relax() {
  _mm_pause();
}

}  // namespace quire
