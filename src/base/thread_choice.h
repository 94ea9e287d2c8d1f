// Chooses the CPUs that an engine's threads run on.
#pragma once

#include <string>
#include <vector>

#include "base/cpu_topology.h"
#include "base/thread_pool.h"

namespace quire {

enum class CpuCores { kPerformance, kAll };
// kAuto pins if no other program is expected on the same cores (choose_threads).
enum class CpuPinning { kAuto, kOn, kOff };

struct ThreadOptions {
  int num_threads = 0;  // 0: one per physical core, within the quota
  CpuCores cores = CpuCores::kPerformance;
  CpuPinning pinning = CpuPinning::kAuto;
};

// The limits of this process.
struct CpuLimits {
  std::vector<int> affinity;  // ascending
  int quota = 0;              // CPUs whose time the control group has; 0: no quota
};
CpuLimits cpu_limits();

// The machine's CPUs and the limits of this process, read once for several choices.
struct MachineCpus {
  Result<CpuTopology> topology;
  CpuLimits limits;
};
MachineCpus read_machine_cpus();

struct ThreadChoice {
  // By thread. Each prefix is spread evenly over the nodes, so that a pool can also run on fewer
  // threads.
  std::vector<ThreadPlace> places;
  int num_cores = 0;  // physical cores that the process may use, efficiency cores only with kAll
  int num_cpus = 0;   // the logical CPUs of these cores
  // Values for a report.
  std::string threads;
  std::string pinning;
  std::string left_out;  // efficiency cores; empty: there are none
  std::string quota;     // empty: there is none
};

// Chooses one CPU set per thread, by these rules:
// - Each thread has a physical core of its own, as long as there are enough. More threads share
//   cores by their second CPUs. Efficiency cores take part only with kAll.
// - If fewer threads than cores are wanted, they use as few nodes as possible.
// - kAuto pins each thread to its core if all cores have one, unless there is one node, one CPU per
//   core, and no efficiency core is left out. Fewer threads are bound to their node or to the
//   performance cores, because other programs may run on a part of the cores. With a quota below
//   the number of CPUs, or more threads than CPUs, no thread is pinned.
// - Threads that are not pinned are all of node 0.
ThreadChoice choose_threads(const CpuTopology& topology, const CpuLimits& limits,
                            const ThreadOptions& options);
// The choice without a topology: by default one thread per CPU within the limits, none pinned.
// `reason` says why there is no topology.
ThreadChoice choose_without_topology(const CpuLimits& limits, const ThreadOptions& options,
                                     std::string_view reason);
ThreadChoice choose_threads(const MachineCpus& cpus, const ThreadOptions& options);
// The choice for this process and machine, whose CPUs it reads.
ThreadChoice choose_threads(const ThreadOptions& options);

bool is_on_one_node(const ThreadChoice& choice);

// One line for the log.
std::string describe(const ThreadChoice& choice);

}  // namespace quire
