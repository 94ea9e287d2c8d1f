#include "base/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include "base/numbers.h"

namespace quire {
namespace {

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;  // "max", or no such file
  return number;
}

int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");  // "QUOTA PERIOD", or "max PERIOD"
  int64_t quota_us = 0;
  int64_t period_us = 0;
  if (!(file >> quota_us >> period_us) || period_us <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>(ceil_div(quota_us, period_us));
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

std::optional<int64_t> free_cgroup_bytes(std::string_view max, std::string_view current,
                                         std::string_view stat) {
  const auto limit = number_in(max);
  const auto used = number_in(current);
  if (!limit || !used) return std::nullopt;
  int64_t file_bytes = 0;
  std::istringstream lines{std::string(stat)};
  std::string key;
  int64_t value = 0;
  while (lines >> key >> value) {
    if (key == "active_file" || key == "inactive_file") file_bytes += value;
  }
  return std::clamp<int64_t>(*limit - *used + file_bytes, 0, *limit);
}

int64_t free_memory_bytes() {
  const int64_t free_bytes = available_bytes();
  const auto free_here = free_cgroup_bytes(text_of("/sys/fs/cgroup/memory.max"),
                                           text_of("/sys/fs/cgroup/memory.current"),
                                           text_of("/sys/fs/cgroup/memory.stat"));
  return std::min(free_bytes, free_here.value_or(free_bytes));
}

}  // namespace quire
