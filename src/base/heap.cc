#include "base/heap.h"

#include <malloc.h>

namespace quire {

void map_large_allocations() {
  constexpr int kMappedBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kMappedBytes);
}

void trim_heap() {
  ::malloc_trim(0);
}

}  // namespace quire
