// Runs one model on several ranks.
#pragma once

#include <memory>
#include <vector>

#include "platform/platform.h"
#include "platform/runner.h"

namespace quire {

struct RankRunner {
  DeviceContext* context = nullptr;  // outlives the runner
  std::unique_ptr<Runner> runner;
};

// Gives every rank the same plans. All ranks compute and sample alike, so each knows the tokens
// that the next step continues, and the results are those of rank 0, whose work is enqueued by the
// caller's thread. Every other rank has a thread of its own. `ranks`: by rank, at least two.
std::unique_ptr<Runner> make_parallel_runner(std::vector<RankRunner> ranks);

}  // namespace quire
