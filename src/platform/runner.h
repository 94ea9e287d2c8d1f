// `run`: turns plans into work, one step after the other.
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
  std::vector<SampledSpan> spans;  // one for each slice that samples, in the plan's order
  Status error;                    // a device fault: nothing of this step can be used
};

// One step runs and one waits behind it: enough to hide the host, and a token is never more than
// one step old when its stop is seen.
inline constexpr int kMaxStepsInFlight = 2;

class Runner {
 public:
  virtual ~Runner() = default;

  // Queues a step behind those already queued, at most kMaxStepsInFlight, and returns at once.
  virtual void enqueue(std::shared_ptr<const BatchPlan> plan) = 0;
  // Waits for the oldest step not yet waited for.
  virtual StepResult wait() = 0;
  // Counts of the context's stream since its newest runner was made. Called by the thread that
  // enqueues and waits.
  virtual DeviceTraffic traffic() const { return {}; }
};

// A model loaded onto one device, with what its steps need there. The pointees outlive its runner.
struct ModelInstance {
  Model* model = nullptr;
  const KvCache* kv_cache = nullptr;
  std::vector<AttentionSelector> attention = {};  // one per KV group
  std::span<const AttentionPlans> plans = {};     // of the same groups, for this instance alone
};

// The sizes that a runner's own memory depends on.
struct RunnerSizes {
  ModelLimits limits;         // of the model that is sampled from, as it was loaded
  int max_num_seqs = 0;       // in one step: at most limits.max_num_tokens
  int max_num_rule_seqs = 0;  // of them, those with sampling rules (sched/policy.h, has_rules)
  int vocab_size = 0;
  int num_layers = 0;
  std::vector<int> windows = {0};  // by block table; 0: none
  bool enforce_eager = false;      // no graphs
};

// The parts of a runner, all on one device. The pointees outlive it.
struct RunnerParts {
  // The first is the target, whose logits are sampled. The drafter runs the others.
  std::vector<ModelInstance> instances;
  RunnerSizes sizes;
  std::span<std::byte> workspace;  // for the attention of all instances in turn
  Drafter* drafter = nullptr;      // proposes limits.num_drafts tokens after each step; null: none
  // Parts of the memory budget: kept for graphs and libraries, and left over beside them.
  int64_t reserve_bytes = 0;
  int64_t left_bytes = 0;

  const ModelInstance& target() const { return instances.front(); }
};

}  // namespace quire
