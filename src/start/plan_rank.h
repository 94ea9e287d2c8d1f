// The plan of one rank for one context length.
#pragma once

#include <memory>
#include <span>

#include "start/engine_plan.h"
#include "start/model_files.h"
#include "start/sizes.h"

namespace quire {

// The inputs of every decision of one plan.
struct PlanInputs {
  const EngineConfig& config;
  const ModelFiles& files;
  const Platform& platform;
  DeviceContext& context;
  const DraftRequest& drafts;
  DType dtype;     // of the checkpoint
  DType kv_dtype;  // of the cache
  bool is_eager;   // no graphs
  Sizes sizes;
  int64_t freed_bytes = 0;  // of other programs: counts as free memory, as if these had ended
  std::shared_ptr<const TuningTable> table;  // empty until find_shared_table()
};

// Returns the runner's sizes, without the sizes that depend on the KV groups, the weights or the
// drafter.
RunnerSizes runner_sizes(const PlanInputs& in);
// q_lens: the query lengths of decode steps, ascending.
Result<AttentionSelector> make_selector(const PlanInputs& in, const KvGroup& group,
                                        std::span<const int> q_lens);

// Makes the plan without its scheduler. Fails if the cache cannot hold one sequence of
// sizes.max_model_len tokens. With `check_first`, fails before it makes the attention plans if the
// cache could not hold the sequence even without their memory. The KV groups depend on
// max_model_len, because a window as long as the context has no effect.
Result<EnginePlan> plan_rank(const PlanInputs& in, bool check_first);

}  // namespace quire
