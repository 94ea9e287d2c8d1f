// Runs one model on several ranks.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "nodes/nodes.h"
#include "platform/platform.h"
#include "platform/runner.h"

namespace quire {

struct RankRunner {
  DeviceContext* context = nullptr;  // outlives the runner
  std::unique_ptr<Runner> runner;
};

struct ParallelRunnerOptions {
  // On node 0, the nodes with the other ranks; null on a single node.
  std::shared_ptr<Nodes> nodes = nullptr;
  // A step in flight that makes no progress for this long has failed; 0: unlimited.
  std::chrono::milliseconds step_timeout{0};
};

// Gives every rank the same plans. All ranks sample the same tokens, so each has the input of its
// next step, and the runner returns the results of rank 0. The caller's thread enqueues the steps
// of rank 0; every other rank has its own thread. `ranks`: the ranks of this process, in order. All
// nodes together have at least two ranks.
//
// Decisions that depend on measured times must be equal on all ranks, so they use the times of rank
// 0: the attention backends (find_shared_table()), the drafts that a CPU leaves out
// (HostRunner::broadcast_from_rank0()), and the number of drafts that a GPU verifies
// (Agreement::from_first()).
std::unique_ptr<Runner> make_parallel_runner(std::vector<RankRunner> ranks,
                                             const ParallelRunnerOptions& options = {});

}  // namespace quire
