#include "base/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include "base/ascii.h"
#include "base/cpu_topology.h"

namespace quire {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The number in a file of a control group; nullopt: it is "max", or there is no such file.
std::optional<int64_t> number_in(std::string_view text) {
  return parse_whole<int64_t>(trimmed(text));
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

// When the machine started, in seconds since the epoch.
int64_t boot_time() {
  std::istringstream stat(text_of("/proc/stat"));
  std::string key;
  int64_t seconds = 0;
  while (stat >> key) {
    if (key == "btime" && stat >> seconds) return seconds;
    stat.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

int64_t num_open_descriptors() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++count;
  }
  return std::max<int64_t>(0, count - 1);  // without the descriptor of the iterator
}

// The control group of `controller` relative to the root; the root if it is unlisted. `membership`:
// the text of /proc/self/cgroup, where version 2 has the controller "".
std::filesystem::path group_of(std::string_view membership, std::string_view controller) {
  while (!membership.empty()) {
    const std::string_view line = membership.substr(0, membership.find('\n'));
    membership.remove_prefix(std::min(line.size() + 1, membership.size()));
    const size_t first = line.find(':');  // "4:cpu,cpuacct:/group"
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    return std::filesystem::path(line.substr(second + 1)).relative_path();
  }
  return {};
}

// The lowest quota of a group and its parents.
template <typename QuotaOf>
std::optional<int> lowest_quota(std::filesystem::path group, const QuotaOf& quota_of) {
  std::optional<int> lowest;
  while (true) {
    const std::optional<int> quota = quota_of(group);
    if (quota) lowest = std::min(*quota, lowest.value_or(*quota));
    if (group.empty()) return lowest;
    group = group.parent_path();
  }
}

}  // namespace

int64_t start_ticks_of(const std::string& process) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
  const size_t name_end = stat.rfind(')');  // the name can have spaces and brackets
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  constexpr int kFieldsBefore = 19;  // "starttime" is the 22nd field, the name the second
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) fields >> skipped;
  int64_t ticks = 0;
  return fields >> ticks ? ticks : 0;
}

ProcessUse process_use() {
  ProcessUse use;
  use.cpu_seconds = 1e-9 * static_cast<double>(process_cpu_ns());
  std::istringstream statm(text_of("/proc/self/statm"));
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  if (statm >> use.virtual_bytes >> use.resident_bytes) {
    use.virtual_bytes *= page_bytes;
    use.resident_bytes *= page_bytes;
  }
  use.num_open_fds = num_open_descriptors();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) use.max_fds = static_cast<int64_t>(limit.rlim_cur);
  use.started_at =
      static_cast<double>(boot_time()) +
      static_cast<double>(start_ticks_of("self")) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return use;
}

int num_usable_cpus() {
  const int num_cpus = count_cpus(thread_affinity());
  return std::min(num_cpus, cpu_quota().value_or(num_cpus));
}

std::optional<int> cpu_quota(std::string_view max, std::string_view quota_us,
                             std::string_view period_us) {
  if (!max.empty()) {  // "QUOTA PERIOD", or "max PERIOD"
    const size_t space = std::min(max.find(' '), max.size() - 1);
    quota_us = max.substr(0, space);
    period_us = max.substr(space + 1);
  }
  const std::optional<int64_t> quota = number_in(quota_us);  // version 1 has -1 for no limit
  const std::optional<int64_t> period = number_in(period_us);
  if (!quota || !period || *quota < 1 || *period < 1) return std::nullopt;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(kMost, 1 + (*quota - 1) / *period));
}

std::optional<int> cpu_quota(const std::filesystem::path& root, std::string_view membership) {
  const std::filesystem::path root1 = root / "cpu";  // of version 1
  const std::optional<int> version1 =
      lowest_quota(group_of(membership, "cpu"), [&](const auto& group) {
        return cpu_quota("", text_of(root1 / group / "cpu.cfs_quota_us"),
                         text_of(root1 / group / "cpu.cfs_period_us"));
      });
  const std::optional<int> version2 = lowest_quota(
      group_of(membership, ""),
      [&](const auto& group) { return cpu_quota(text_of(root / group / "cpu.max"), "", ""); });
  return version1 && version2 ? std::min(version1, version2) : version1 ? version1 : version2;
}

std::optional<int> cpu_quota() {
  return cpu_quota("/sys/fs/cgroup", text_of("/proc/self/cgroup"));
}

std::string cpu_model() {
  const std::string name = proc_field(text_of("/proc/cpuinfo"), "model name");
  return name.empty() ? "unknown" : name;
}

std::string proc_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || trimmed(line.substr(0, colon)) != key) continue;
    return std::string(trimmed(line.substr(colon + 1)));
  }
  return "";
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

int64_t raise_descriptor_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<int64_t>::max();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

}  // namespace quire
