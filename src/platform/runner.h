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
  // Of all steps so far; asked by the thread that enqueues and waits.
  virtual DeviceTraffic traffic() const { return {}; }
};

// What a runner is made of. The pointees outlive it.
struct RunnerParts {
  Model* model = nullptr;
  const KvCache* kv_cache = nullptr;
  std::vector<AttentionSelector> attention;  // one per KV group
  std::span<const AttentionPlans> plans;     // of the same groups, for this runner alone
  std::span<std::byte> workspace;
  Drafter* drafter = nullptr;  // proposes limits.num_drafts tokens after each step; null: none
  ModelLimits limits;          // what the model was loaded with
  int max_num_seqs = 0;        // in one step: at most limits.max_num_tokens
  int max_num_rule_seqs = 0;   // of them, those with sampling rules
  bool enforce_eager = false;  // no graphs
  // Of the memory budget: for what could not be known ahead, and left beside it.
  int64_t reserve_bytes = 0;
  int64_t left_bytes = 0;
};

}  // namespace quire
