#include "base/cpu_topology.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/ascii.h"
#include "base/file.h"
#include "base/numbers.h"
#include "base/text.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxCpus = 1 << 16;      // above the kernel's own limit
constexpr int kMaxCapacity = 1 << 16;  // above the kernel's 1024

Result<std::string> read_small_file(const fs::path& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxBytes));
  return std::string(trimmed(text));
}

Status in_file(const fs::path& path, const Status& error) {
  return {error.code(), fmt::format("{}: {}", path.string(), error.message())};
}

Result<std::vector<int>> read_list(const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
  Result<std::vector<int>> list = parse_cpu_list(text);
  if (!list.ok()) return in_file(path, list.status());
  return list;
}

// nullopt: there is no such file.
Result<std::optional<std::vector<int>>> read_optional_list(const fs::path& path) {
  QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
  if (!exists) return std::optional<std::vector<int>>();
  QUIRE_ASSIGN_OR_RETURN(std::vector<int> list, read_list(path));
  return std::optional(std::move(list));
}

fs::path cpu_folder(const fs::path& root, int cpu) {
  return root / "system" / "cpu" / fmt::format("cpu{}", cpu);
}

Result<int> read_core(const fs::path& root, int cpu) {
  const fs::path path = cpu_folder(root, cpu) / "topology" / "thread_siblings_list";
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int> siblings, read_list(path));
  if (std::ranges::binary_search(siblings, cpu)) return siblings.front();
  return in_file(path, invalid_argument(fmt::format("got a list without CPU {}, expected it among "
                                                    "the CPUs of its own core",
                                                    cpu)));
}

// "node12" is node 12.
std::optional<int> node_id(const fs::path& folder) {
  constexpr std::string_view kPrefix = "node";
  const std::string name = folder.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return parse_whole<int>(std::string_view(name).substr(kPrefix.size()));
}

LogicalCpu* find_cpu(CpuTopology& cpus, int id) {
  const auto found = std::ranges::lower_bound(cpus, id, {}, &LogicalCpu::id);
  return found != cpus.end() && found->id == id ? &*found : nullptr;
}

Status read_nodes(const fs::path& root, CpuTopology& cpus) {
  std::error_code error;
  const fs::path folder = root / "system" / "node";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<int> node = node_id(entry->path());
    if (!node) continue;
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int> list, read_list(entry->path() / "cpulist"));
    for (const int id : list) {
      if (LogicalCpu* cpu = find_cpu(cpus, id)) cpu->node = *node;
    }
  }
  return {};
}

// Hybrid processors of Intel list their performance cores in cpu_core/cpus.
Status read_hybrid(const fs::path& root, CpuTopology& cpus) {
  QUIRE_ASSIGN_OR_RETURN(const auto performance, read_optional_list(root / "cpu_core" / "cpus"));
  if (!performance || performance->empty()) return {};
  for (LogicalCpu& cpu : cpus) {
    cpu.on_efficiency_core = !std::ranges::binary_search(*performance, cpu.id);
  }
  return {};
}

// Arm's kernels give each CPU a capacity, which is 1024 for the fastest. The mid cores of
// processors with three kinds have more than 800, and efficiency cores have at most 530.
Status read_capacities(const fs::path& root, CpuTopology& cpus) {
  std::vector<int> capacities;
  for (const LogicalCpu& cpu : cpus) {
    const fs::path path = cpu_folder(root, cpu.id) / "cpu_capacity";
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
    if (!exists) return {};
    QUIRE_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
    const std::optional<int> capacity = parse_whole<int>(text);
    if (!capacity || *capacity < 1 || *capacity > kMaxCapacity) {
      return in_file(path, invalid_argument(fmt::format("got '{}', expected a number of 1 to {}",
                                                        one_line(text), kMaxCapacity)));
    }
    capacities.push_back(*capacity);
  }
  const int highest = *std::ranges::max_element(capacities);
  for (size_t i = 0; i < cpus.size(); ++i) {
    cpus[i].on_efficiency_core |= 3 * capacities[i] < 2 * highest;
  }
  return {};
}

std::string system_error() {
  return std::strerror(errno);
}

// A set of CPUs of any size.
class CpuSet {
 public:
  explicit CpuSet(int num_cpus)
      : num_cpus_(num_cpus), num_bytes_(CPU_ALLOC_SIZE(num_cpus)), words_(new char[num_bytes_]) {
    CPU_ZERO_S(num_bytes_, set());
  }

  void add(int cpu) { CPU_SET_S(static_cast<size_t>(cpu), num_bytes_, set()); }
  std::vector<int> list() const {
    std::vector<int> cpus;
    for (int i = 0; i < num_cpus_; ++i) {
      if (CPU_ISSET_S(static_cast<size_t>(i), num_bytes_, set())) cpus.push_back(i);
    }
    return cpus;
  }
  size_t num_bytes() const { return num_bytes_; }
  cpu_set_t* set() const { return reinterpret_cast<cpu_set_t*>(words_.get()); }

 private:
  int num_cpus_;
  size_t num_bytes_;
  std::unique_ptr<char[]> words_;
};

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  const auto malformed = [&] {
    return invalid_argument(
        fmt::format("got '{}', expected a list such as 0-3,8", one_line(text.substr(0, 80))));
  };
  for (std::string_view left = text; !left.empty();) {
    const size_t end = left.find(',');
    const std::string_view part = left.substr(0, end);
    if (end == left.size() - 1) return malformed();
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    const size_t dash = part.find('-');
    const auto first = parse_whole<int>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : parse_whole<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) return malformed();
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

Result<CpuTopology> read_cpu_topology(const fs::path& root) {
  CpuTopology cpus;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int> online,
                         read_list(root / "system" / "cpu" / "online"));
  if (online.empty()) return unavailable(root.string() + ": the list of CPUs is empty");
  for (const int id : online) {
    QUIRE_ASSIGN_OR_RETURN(const int core, read_core(root, id));
    cpus.push_back({.id = id, .core = core});
  }
  QUIRE_RETURN_IF_ERROR(read_nodes(root, cpus));
  QUIRE_RETURN_IF_ERROR(read_hybrid(root, cpus));
  QUIRE_RETURN_IF_ERROR(read_capacities(root, cpus));
  return cpus;
}

std::vector<int> thread_affinity() {
  // The call fails with EINVAL while the set is smaller than the kernel's own.
  for (int num_cpus = 1024; num_cpus <= kMaxCpus; num_cpus *= 4) {
    CpuSet set(num_cpus);
    if (::sched_getaffinity(0, set.num_bytes(), set.set()) == 0) return set.list();
    if (errno != EINVAL) break;
  }
  return {};
}

int count_cpus(std::span<const int> affinity) {
  const size_t num_cpus = affinity.empty() ? std::thread::hardware_concurrency() : affinity.size();
  return std::max(1, static_cast<int>(num_cpus));
}

Status set_thread_affinity(std::span<const int> cpus) {
  CpuSet set(cpus.empty() ? 1 : *std::ranges::max_element(cpus) + 1);
  for (const int cpu : cpus) set.add(cpu);
  if (::sched_setaffinity(0, set.num_bytes(), set.set()) == 0) return {};
  return unavailable("[threads] the kernel refused the affinity of a thread: " + system_error());
}

Status interleave_pages(void* data, size_t num_bytes, std::span<const int> nodes) {
  constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;
  if (nodes.empty()) return {};
  const int highest = *std::ranges::max_element(nodes);
  std::vector<unsigned long> mask(static_cast<size_t>(highest / kWordBits + 1));
  for (const int node : nodes) {
    mask[static_cast<size_t>(node / kWordBits)] |= 1UL << (node % kWordBits);
  }
  // The kernel reads one bit less than the number says.
  const auto num_bits = static_cast<unsigned long>(mask.size() * kWordBits + 1);
  if (::syscall(SYS_mbind, data, num_bytes, MPOL_INTERLEAVE, mask.data(), num_bits, 0U) == 0) {
    return {};
  }
  return unavailable("[threads] the kernel refused to interleave memory over nodes: " +
                     system_error());
}

}  // namespace quire
