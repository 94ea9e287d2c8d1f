// `run`: turns plans into work, one step after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

struct StepResult {
  std::vector<SampledToken> sampled;  // one for each slice that samples, in the plan's order
  Status error;                       // a device fault: nothing of this step can be used
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Queues a step behind those already queued, and returns at once.
  virtual void enqueue(std::shared_ptr<const BatchPlan> plan) = 0;
  // Waits for the oldest step not yet waited for.
  virtual StepResult wait() = 0;
};

}  // namespace quire
