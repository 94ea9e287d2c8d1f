// `run`: turns plans into work, one step after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attn/selector.h"
#include "model/model.h"
#include "platform/kv_cache.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

struct StepResult {
  std::vector<SampledToken> sampled;  // one for each slice that samples, in the plan's order
  Status error;                       // a device fault: nothing of this step can be used
};

// What crossed from the device to the host, in all steps: the price of asking a GPU. A CPU has
// none.
struct DeviceTraffic {
  int64_t num_copies = 0;  // device to host
  int64_t num_waits = 0;   // of the host for the device
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Queues a step behind those already queued, and returns at once.
  virtual void enqueue(std::shared_ptr<const BatchPlan> plan) = 0;
  // Waits for the oldest step not yet waited for.
  virtual StepResult wait() = 0;
  // So far; asked by the thread that enqueues and waits.
  virtual DeviceTraffic traffic() const { return {}; }
};

// What a runner is made of. The pointees outlive it.
struct RunnerParts {
  Model* model = nullptr;
  const KvCache* kv_cache = nullptr;
  std::vector<AttentionSelector> attention;  // one a KV group
  Workspace workspace;
  ModelLimits limits;  // what the model was loaded with
  int max_num_seqs = 0;
  bool enforce_eager = false;  // no graphs
};

}  // namespace quire
