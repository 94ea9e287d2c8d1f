// The resources of the machine that this process may use, within a container's limits, and the
// resources that it uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace quire {

inline constexpr size_t kHugePage = size_t{2} << 20;  // bytes, on x86-64 and most ARM systems

// Logical CPUs, limited by affinity and the control group's quota; at least 1.
int num_usable_cpus();

// The CPU quota of the process's control group, or of a stricter parent, in CPUs and rounded up; at
// least 1. nullopt: no limit.
std::optional<int> cpu_quota();
// Reads the lowest quota of the process's own control group and its parents. root: where control
// groups are mounted; `membership` is the text of /proc/self/cgroup.
std::optional<int> cpu_quota(const std::filesystem::path& root, std::string_view membership);
// The quota from the texts of a control group's files: cpu.max of version 2, or, if that is empty,
// cpu.cfs_quota_us and cpu.cfs_period_us of version 1.
std::optional<int> cpu_quota(std::string_view max, std::string_view quota_us,
                             std::string_view period_us);

// The processor's name; "unknown" if the system does not report it.
std::string cpu_model();
// The value after "key :" in the first line of /proc/cpuinfo or /proc/meminfo with that key.
std::string proc_field(std::string_view text, std::string_view key);

// Bytes of memory available without evicting other programs' memory.
int64_t free_memory_bytes();

// Free bytes of a control group (version 2), from its memory.max, memory.current and memory.stat.
// Its file cache counts as free, because the kernel reclaims it when memory is needed. nullopt: no
// limit.
std::optional<int64_t> free_cgroup_bytes(std::string_view max, std::string_view current,
                                         std::string_view stat);

// The resources that this process uses, as Prometheus's process_* metrics name them. A value that
// the system does not report is 0.
struct ProcessUse {
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t num_open_fds = 0;
  int64_t max_fds = 0;
  double started_at = 0;  // seconds since the epoch
};
ProcessUse process_use();

// When a process started, in clock ticks since the machine did; 0: not known. `process` is its id,
// or "self".
int64_t start_ticks_of(const std::string& process);

// Raises the limit on open file descriptors to the maximum that the process may set, and returns
// it.
int64_t raise_descriptor_limit();

// The clock's CPU time in nanoseconds. It excludes other programs (and, for a thread, other
// threads), so bounds on it hold on a loaded machine.
inline int64_t cpu_ns_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// CPU time of the calling thread in nanoseconds.
inline int64_t thread_cpu_ns() {
  return cpu_ns_on(CLOCK_THREAD_CPUTIME_ID);
}

// CPU time of all threads of the process in nanoseconds.
inline int64_t process_cpu_ns() {
  return cpu_ns_on(CLOCK_PROCESS_CPUTIME_ID);
}

// CPU time in nanoseconds that `work` takes on the calling thread.
template <typename Work>
int64_t cpu_ns_of(Work work) {
  const int64_t start = thread_cpu_ns();
  work();
  return thread_cpu_ns() - start;
}

}  // namespace quire
