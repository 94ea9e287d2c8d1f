// The busy wait of processors without an instruction for it.
#pragma once

#include <thread>

namespace quire {

// One round of a busy wait.
inline void cpu_relax() {
  std::this_thread::yield();
}

}  // namespace quire
