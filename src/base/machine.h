// What this process may use of the machine, a container's limits included.
#pragma once

#include <cstdint>

namespace quire {

// Logical cores, by affinity and the control group's quota; at least 1.
int num_usable_cores();

// Memory that can be taken without pushing others out, in bytes.
int64_t free_memory_bytes();

}  // namespace quire
