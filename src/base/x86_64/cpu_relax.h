// The busy wait of x86-64.
#pragma once

#include <immintrin.h>

namespace quire {

// One round of a busy wait: lets the other hardware thread of the core use the execution units.
inline void cpu_relax() {
  _mm_pause();
}

}  // namespace quire
