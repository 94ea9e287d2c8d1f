// What this process may use of the machine, a container's limits included.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

// Logical cores, by affinity and the control group's quota; at least 1.
int num_usable_cores();

// Memory that can be taken without pushing others out, in bytes.
int64_t free_memory_bytes();

// The same of a control group (version 2), from its memory.max, memory.current and memory.stat.
// What it holds of files is given up when memory is needed, so that it counts as free. nullopt: no
// limit.
std::optional<int64_t> free_cgroup_bytes(std::string_view max, std::string_view current,
                                         std::string_view stat);

}  // namespace quire
