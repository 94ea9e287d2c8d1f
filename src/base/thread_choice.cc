#include "base/thread_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/machine.h"

namespace quire {
namespace {

struct Core {
  std::vector<int> cpus;  // the logical CPUs that the process may use, ascending
};

// The physical cores of one NUMA node that threads may use.
struct Node {
  int id = 0;
  std::vector<Core> cores;
  std::vector<int> cpus;  // of all cores, ascending
};

struct Usable {
  std::vector<Node> nodes;  // ascending by id; none is empty
  int num_cores = 0;
  int num_cpus = 0;
  int num_left_out = 0;  // efficiency cores
};

Usable usable_cores(const CpuTopology& topology, const CpuLimits& limits, CpuCores wanted) {
  CpuTopology allowed;
  std::ranges::copy_if(topology, std::back_inserter(allowed), [&](const LogicalCpu& cpu) {
    return std::ranges::binary_search(limits.affinity, cpu.id);
  });
  const auto is_slow = [](const LogicalCpu& cpu) { return cpu.on_efficiency_core; };
  // A process that may only use efficiency cores uses them.
  const bool takes_all = wanted == CpuCores::kAll || std::ranges::all_of(allowed, is_slow);
  std::map<int, std::map<int, Core>> nodes;  // by node, then by core
  std::set<int> left_out;                    // efficiency cores, by core id
  for (const LogicalCpu& cpu : allowed) {
    if (cpu.on_efficiency_core && !takes_all) {
      left_out.insert(cpu.core);
      continue;
    }
    nodes[cpu.node][cpu.core].cpus.push_back(cpu.id);
  }
  Usable usable;
  usable.num_left_out = static_cast<int>(left_out.size());
  for (const auto& [id, cores] : nodes) {
    Node& node = usable.nodes.emplace_back();
    node.id = id;
    for (const auto& [core_id, core] : cores) {
      node.cores.push_back(core);
      node.cpus.insert(node.cpus.end(), core.cpus.begin(), core.cpus.end());
    }
    std::ranges::sort(node.cpus);
    usable.num_cores += static_cast<int>(node.cores.size());
    usable.num_cpus += static_cast<int>(node.cpus.size());
  }
  return usable;
}

// Keeps the fewest nodes with `num_threads` cores, beginning with the largest nodes.
std::vector<Node> nodes_for(std::vector<Node> nodes, int num_threads) {
  std::ranges::stable_sort(nodes, std::greater(),
                           [](const Node& node) { return node.cores.size(); });
  size_t num_nodes = 0;
  for (int num_cores = 0; num_cores < num_threads && num_nodes < nodes.size(); ++num_nodes) {
    num_cores += static_cast<int>(nodes[num_nodes].cores.size());
  }
  nodes.resize(num_nodes);
  std::ranges::sort(nodes, {}, &Node::id);
  return nodes;
}

// The places of a node's threads, in the order in which threads take them: whole cores; if threads
// share cores, the first CPU of every core, then the second CPUs.
std::vector<std::vector<int>> places_on(const Node& node, bool shares_cores) {
  std::vector<std::vector<int>> places;
  if (!shares_cores) {
    for (const Core& core : node.cores) places.push_back(core.cpus);
    return places;
  }
  for (size_t round = 0; places.size() < node.cpus.size(); ++round) {
    for (const Core& core : node.cores) {
      if (round < core.cpus.size()) places.push_back({core.cpus[round]});
    }
  }
  return places;
}

// Chooses one place per thread, for at most as many threads as the nodes have CPUs. Each thread
// goes to the node where the fraction of taken places stays smallest. `on_nodes`: a thread is bound
// to all CPUs of its node, instead of to the CPUs of its place.
std::vector<ThreadPlace> place_threads(const std::vector<Node>& nodes, int num_threads,
                                       bool on_nodes) {
  size_t num_cores = 0;
  for (const Node& node : nodes) num_cores += node.cores.size();
  const bool shares_cores = static_cast<size_t>(num_threads) > num_cores;
  struct NodePlaces {
    const Node* node;
    std::vector<std::vector<int>> places;
    size_t num_taken = 0;
  };
  std::vector<NodePlaces> all;
  for (const Node& node : nodes) all.push_back({&node, places_on(node, shares_cores)});
  std::vector<ThreadPlace> places;
  for (int i = 0; i < num_threads; ++i) {
    NodePlaces& next = *std::ranges::min_element(all, [](const NodePlaces& a, const NodePlaces& b) {
      return (a.num_taken + 1) * b.places.size() < (b.num_taken + 1) * a.places.size();
    });
    const std::vector<int>& place = next.places[next.num_taken++];
    places.push_back({.cpus = on_nodes ? next.node->cpus : place, .node = next.node->id});
  }
  return places;
}

std::string plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

enum class PinLevel { kNone, kNode, kCore };

struct PinDecision {
  PinLevel level = PinLevel::kNone;
  std::string why;
};

PinDecision decide_pinning(const Usable& usable, const CpuLimits& limits,
                           const ThreadOptions& options, int num_threads) {
  if (options.pinning == CpuPinning::kOff) return {PinLevel::kNone, "off, as --cpu-pinning says"};
  if (num_threads > usable.num_cpus) {
    return {PinLevel::kNone,
            fmt::format("off: {} threads share {}", num_threads,
                        plural(static_cast<size_t>(usable.num_cpus), "logical CPU"))};
  }
  const std::string_view place = num_threads > usable.num_cores ? "logical CPU" : "core";
  if (options.pinning == CpuPinning::kOn) {
    return {PinLevel::kCore, fmt::format("each thread to a {}, as --cpu-pinning says", place)};
  }
  if (limits.quota > 0 && limits.quota < std::ssize(limits.affinity)) {
    return {PinLevel::kNone,
            fmt::format("off: the quota of {} is less than the {} CPUs that the process may use, "
                        "so other programs may run on them, too",
                        plural(static_cast<size_t>(limits.quota), "CPU"), limits.affinity.size())};
  }
  if (num_threads >= usable.num_cores) {
    // If all placements are equally good, pinning only makes a thread wait for other programs on
    // its core.
    if (usable.nodes.size() == 1 && usable.num_cpus == usable.num_cores &&
        usable.num_left_out == 0) {
      return {PinLevel::kNone, "off: all cores are of one node and have one CPU each"};
    }
    return {PinLevel::kCore,
            fmt::format("each thread to a {}, because all cores have a thread", place)};
  }
  constexpr std::string_view kWhy = "because other programs may use the rest of the cores";
  if (usable.nodes.size() > 1) {
    return {PinLevel::kNode, fmt::format("each thread to the cores of its node, {}", kWhy)};
  }
  if (usable.num_left_out > 0) {
    return {PinLevel::kNode, fmt::format("each thread to the performance cores, {}", kWhy)};
  }
  return {PinLevel::kNone,
          fmt::format("off: {} on {} cores, {}", plural(static_cast<size_t>(num_threads), "thread"),
                      usable.num_cores, kWhy)};
}

int default_threads(int num_available, const CpuLimits& limits) {
  return std::max(1, limits.quota > 0 ? std::min(num_available, limits.quota) : num_available);
}

// "node 0: 32, node 1: 32"; empty for one node.
std::string threads_by_node(const std::vector<ThreadPlace>& places) {
  std::map<int, int> counts;
  for (const ThreadPlace& place : places) ++counts[place.node];
  if (counts.size() < 2) return "";
  std::string text;
  for (const auto& [node, count] : counts) {
    text += fmt::format("{}node {}: {}", text.empty() ? "" : ", ", node, count);
  }
  return text;
}

std::string describe_quota(const CpuLimits& limits) {
  return limits.quota == 0 ? ""
                           : fmt::format("the control group has the time of {}",
                                         plural(static_cast<size_t>(limits.quota), "CPU"));
}

}  // namespace

CpuLimits cpu_limits() {
  return {.affinity = thread_affinity(), .quota = cpu_quota().value_or(0)};
}

MachineCpus read_machine_cpus() {
  return {.topology = read_cpu_topology(), .limits = cpu_limits()};
}

ThreadChoice choose_threads(const CpuTopology& topology, const CpuLimits& limits,
                            const ThreadOptions& options) {
  const Usable usable = usable_cores(topology, limits, options.cores);
  if (usable.nodes.empty()) {
    return choose_without_topology(limits, options,
                                   limits.affinity.empty()
                                       ? "the kernel does not report which CPUs the process may use"
                                       : "the kernel describes no CPU that the process may use");
  }
  ThreadChoice choice;
  choice.num_cores = usable.num_cores;
  choice.num_cpus = usable.num_cpus;
  const int num_threads =
      options.num_threads > 0 ? options.num_threads : default_threads(usable.num_cores, limits);
  const PinDecision pinning = decide_pinning(usable, limits, options, num_threads);
  choice.pinning = pinning.why;
  if (pinning.level == PinLevel::kNone) {
    choice.places.resize(static_cast<size_t>(num_threads));
  } else {
    choice.places = place_threads(nodes_for(usable.nodes, num_threads), num_threads,
                                  pinning.level == PinLevel::kNode);
  }
  choice.threads = fmt::format("{} on {} ({} on {})", num_threads,
                               plural(static_cast<size_t>(usable.num_cores), "physical core"),
                               plural(static_cast<size_t>(usable.num_cpus), "logical CPU"),
                               plural(usable.nodes.size(), "node"));
  const std::string by_node = threads_by_node(choice.places);
  if (!by_node.empty()) choice.threads += "; " + by_node;
  if (usable.num_left_out > 0) {
    choice.left_out = fmt::format("{} left out; --cpu-cores all uses them", usable.num_left_out);
  }
  choice.quota = describe_quota(limits);
  return choice;
}

ThreadChoice choose_without_topology(const CpuLimits& limits, const ThreadOptions& options,
                                     std::string_view reason) {
  ThreadChoice choice;
  choice.num_cpus = count_cpus(limits.affinity);
  choice.num_cores = choice.num_cpus;  // which CPUs share a core is unknown
  const int num_threads =
      options.num_threads > 0 ? options.num_threads : default_threads(choice.num_cpus, limits);
  choice.places.resize(static_cast<size_t>(num_threads));
  choice.threads = fmt::format("{} on {}", num_threads,
                               plural(static_cast<size_t>(choice.num_cpus), "logical CPU"));
  choice.pinning = fmt::format("off: {}", reason);
  choice.quota = describe_quota(limits);
  return choice;
}

ThreadChoice choose_threads(const MachineCpus& cpus, const ThreadOptions& options) {
  if (cpus.topology.ok()) return choose_threads(*cpus.topology, cpus.limits, options);
  return choose_without_topology(cpus.limits, options,
                                 fmt::format("the kernel does not describe the machine's CPUs; {}",
                                             cpus.topology.status().message()));
}

ThreadChoice choose_threads(const ThreadOptions& options) {
  return choose_threads(read_machine_cpus(), options);
}

bool is_on_one_node(const ThreadChoice& choice) {
  return std::ranges::all_of(choice.places, [&](const ThreadPlace& place) {
    return place.node == choice.places.front().node;
  });
}

std::string describe(const ThreadChoice& choice) {
  std::string text = fmt::format("{}; pinning {}", choice.threads, choice.pinning);
  if (!choice.left_out.empty()) text += fmt::format("; efficiency cores: {}", choice.left_out);
  if (!choice.quota.empty()) text += "; " + choice.quota;
  return text;
}

}  // namespace quire
