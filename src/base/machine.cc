#include "base/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace quire {
namespace {

// The first number of a control-group file (version 2); "max" and a missing file set no limit.
std::optional<int64_t> cgroup_number(const char* path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");  // "QUOTA PERIOD", or "max PERIOD"
  int64_t quota_us = 0;
  int64_t period_us = 0;
  if (!(file >> quota_us >> period_us) || period_us <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>((quota_us + period_us - 1) / period_us);
}

int64_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (meminfo >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return int64_t{1} << 30;
}

}  // namespace

int num_usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int affine = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(affine, quota_cores()));
}

int64_t free_memory_bytes() {
  const int64_t free_bytes = available_bytes();
  const auto limit = cgroup_number("/sys/fs/cgroup/memory.max");
  const auto used = cgroup_number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return free_bytes;
  return std::min(free_bytes, std::max<int64_t>(0, *limit - *used));
}

}  // namespace quire
