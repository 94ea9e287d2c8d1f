#include "base/heap.h"

#include <malloc.h>

namespace quire {

void map_large_allocations() {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(kMappedAllocationBytes));
}

void trim_heap() {
  ::malloc_trim(0);
}

}  // namespace quire
