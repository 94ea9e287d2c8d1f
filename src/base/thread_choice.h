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
  int quota = 0;              // the control group's CPU time, in CPUs; 0: no quota
};
CpuLimits cpu_limits();

// The machine's CPUs and the limits of this process, read once for several choices.
struct MachineCpus {
  Result<CpuTopology> topology;
  CpuLimits limits;
};
MachineCpus read_machine_cpus();

struct ThreadChoice {
  // One per thread. Any first n places are spread evenly over the nodes, so that a pool can also
  // run on n threads.
  std::vector<ThreadPlace> places;
  int num_cores = 0;  // physical cores that the process may use, efficiency cores only with kAll
  int num_cpus = 0;   // the logical CPUs of these cores
  // Values for a report.
  std::string threads;
  std::string pinning;
  std::string left_out;  // efficiency cores; empty: none
  std::string quota;     // empty: none
};

// Chooses one CPU set per thread, by these rules:
// - Each thread has a physical core of its own, while there are enough. Further threads share cores
//   by their second CPUs. Efficiency cores are used only with kAll.
// - Fewer threads than cores use as few nodes as possible.
// - kAuto pins each thread to its core if every core has a thread, except where this has no use:
//   all cores are of one node, have one CPU each, and no efficiency core is left out. Fewer threads
//   are bound to their node or to the performance cores, because other programs may run on other
//   cores. With a quota below the number of CPUs, or more threads than CPUs, no thread is pinned.
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
