// Returns freed memory to the system. Otherwise glibc's allocator keeps it in its arenas. Large
// blocks are kept too: once a block of up to 32 MiB is freed, glibc allocates later blocks of up to
// that size in the arenas.
#pragma once

namespace quire {

// Makes glibc map each later allocation of 1 MiB or more by itself, and unmap it when it is freed.
// With this and TrimSchedule (server/transit_memory.h), a server's memory returned to its earlier
// size after 200 half-sent bodies of 30 MB. Therefore the server has no allocator of its own.
void map_large_allocations();

// Returns the free pages of all arenas. This takes about 1 ms per 100 MiB of them, during which
// allocations of other threads may wait.
void trim_heap();

}  // namespace quire
