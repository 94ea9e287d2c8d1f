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
  // On node 0: of the nodes that have the other ranks; null: there are none.
  std::shared_ptr<Nodes> nodes = nullptr;
  // A step in flight that makes no progress for this long has failed; 0: unlimited.
  std::chrono::milliseconds step_timeout{0};
};

// Gives every rank the same plans. All ranks compute and sample alike, so each knows the tokens
// that the next step continues, and the results are those of rank 0, whose work is enqueued by the
// caller's thread. Every other rank has a thread of its own. `ranks`: those of this process, by
// rank; with those of other nodes at least two.
std::unique_ptr<Runner> make_parallel_runner(std::vector<RankRunner> ranks,
                                             const ParallelRunnerOptions& options = {});

}  // namespace quire
