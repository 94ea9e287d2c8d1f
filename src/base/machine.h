// The resources of the machine that this process may use, within a container's limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

// Logical cores, limited by affinity and the control group's quota; at least 1.
int num_usable_cores();

// Bytes of memory available without evicting other programs' memory.
int64_t free_memory_bytes();

// Free bytes of a control group (version 2), from its memory.max, memory.current and memory.stat.
// Its file cache counts as free, because the kernel reclaims it when memory is needed. nullopt: no
// limit.
std::optional<int64_t> free_cgroup_bytes(std::string_view max, std::string_view current,
                                         std::string_view stat);

}  // namespace quire
