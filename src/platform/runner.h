// A runner executes plans on a device, one step after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attn/plans.h"
#include "model/model.h"
#include "platform/drafter.h"
#include "platform/kv_cache.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

struct StepResult {
  std::vector<SampledSpan> spans;  // one per span that samples, in the plan's order
  Status error;                    // a device fault: no result of this step is valid
};

// One step runs and one waits behind it. This is enough to hide the host's work, and a stop is seen
// at most one step late.
inline constexpr int kMaxStepsInFlight = 2;

class Runner {
 public:
  virtual ~Runner() = default;

  // Queues a step behind those already queued (at most kMaxStepsInFlight in total) and returns at
  // once.
  virtual void enqueue(std::shared_ptr<const BatchPlan> plan) = 0;
  // Waits for the oldest step that has not been waited for.
  virtual StepResult wait() = 0;
  // Transfer counts of the context's stream since its newest runner was made. Only the thread that
  // enqueues and waits may call it.
  virtual DeviceTraffic traffic() const { return {}; }
};

// A model loaded onto one device, with everything that its steps need there. The objects pointed to
// outlive its runner.
struct ModelInstance {
  Model* model = nullptr;
  const KvCache* kv_cache = nullptr;
  std::vector<AttentionSelector> attention = {};  // one per KV group
  std::span<const AttentionPlans> plans = {};     // of the same groups, for this instance alone
};

// The sizes that determine the runner's own memory.
struct RunnerSizes {
  ModelLimits limits;         // of the model that is sampled from, as it was loaded
  int max_num_seqs = 0;       // in one step: at most limits.max_num_tokens
  int max_num_rule_seqs = 0;  // upper bound of those with sampling rules (has_rules())
  int vocab_size = 0;
  int num_layers = 0;
  std::vector<int> windows = {0};  // by block table; 0: none
  bool enforce_eager = false;      // no graphs
};

// The parts of a runner, all on one device. The objects pointed to outlive it.
struct RunnerParts {
  // The first instance is the target, whose logits are sampled. The drafter runs the others.
  std::vector<ModelInstance> instances;
  RunnerSizes sizes;
  std::span<std::byte> workspace;  // for the attention of all instances in turn
  Drafter* drafter = nullptr;      // proposes limits.num_drafts tokens after each step; null: none
  // Parts of the memory budget: reserve_bytes for graphs and libraries, left_bytes unused beside
  // them.
  int64_t reserve_bytes = 0;
  int64_t left_bytes = 0;

  const ModelInstance& target() const { return instances.front(); }
};

}  // namespace quire
