// Returns freed memory to the system. Otherwise glibc's allocator keeps it in its arenas. Large
// blocks are kept too: once a block of up to 32 MiB is freed, glibc allocates later blocks of up to
// that size in the arenas.
#pragma once

#include <cstddef>

namespace quire {

// After map_large_allocations(), an allocation of this size or more is mapped by itself and
// unmapped when it is freed.
inline constexpr size_t kMappedAllocationBytes = size_t{1} << 20;
// With this function and TrimSchedule (server/transit_memory.h), a server's memory returned to its
// earlier size after 200 half-sent bodies of 30 MB. Therefore the server has no allocator of its
// own.
void map_large_allocations();

// Returns the free pages of all arenas. Takes about 1 ms per 100 MiB of them, in which allocations
// of other threads may wait.
void trim_heap();

}  // namespace quire
