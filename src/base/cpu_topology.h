// The machine's CPUs as the kernel describes them: physical cores, NUMA nodes and efficiency cores.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire {

// A hardware thread, which the kernel calls a CPU.
struct LogicalCpu {
  int id = 0;
  int core = 0;  // the lowest id of its physical core's CPUs
  int node = 0;
  bool on_efficiency_core = false;  // its core is slower than others by design

  friend bool operator==(const LogicalCpu&, const LogicalCpu&) = default;
};

// The CPUs that are online, ascending by id.
using CpuTopology = std::vector<LogicalCpu>;

// Reads the kernel's description below `root`. Without files of NUMA nodes, all CPUs are of node 0.
// A machine without files of efficiency cores has no such cores. Fails if another file is missing,
// or if any file is malformed.
Result<CpuTopology> read_cpu_topology(const std::filesystem::path& root = "/sys/devices");

// Parses the kernel's lists, such as "0-3,8,10-11"; the result is ascending. An empty text is an
// empty list.
Result<std::vector<int>> parse_cpu_list(std::string_view text);

// The CPUs on which the kernel may run the calling thread, ascending; empty if unknown.
std::vector<int> thread_affinity();
// The number of these CPUs, or of the machine's CPUs if the list is empty; at least 1.
int count_cpus(std::span<const int> affinity);
Status set_thread_affinity(std::span<const int> cpus);  // binds the calling thread to these CPUs

// Makes the kernel place the pages of `data` on these nodes in turn, each page when it is first
// written. `data` must be page-aligned and not yet touched.
Status interleave_pages(void* data, size_t num_bytes, std::span<const int> nodes);

}  // namespace quire
