// Every decision of a start that needs no weights: types, context, backends, memory. What is not
// possible is refused here, before anything large is read or allocated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "model/model.h"
#include "platform/platform.h"
#include "quire/config.h"
#include "sched/scheduler.h"

namespace quire {

struct AttentionSetup {
  std::vector<KvGroup> kv_groups;
  std::vector<AttentionSelector> selectors;  // one per KV group
  std::vector<AttentionPlans> plans;         // likewise
  std::vector<DecodeKey> decode_keys;        // the decode steps that the selectors tell apart
  size_t workspace_bytes = 0;                // of any of the plans
};

struct EnginePlan {
  DType dtype = DType::kF32;  // of the checkpoint
  RunnerSizes sizes;
  AttentionSetup attention;
  MemoryRequest memory;
  MemoryPlan kv;
  SchedulerConfig scheduler;
};

// The device that --device names; `auto` is a GPU where build and machine have one.
Result<std::unique_ptr<Platform>> make_platform(const EngineConfig& config,
                                                const ModelConfig& model);

// The plan for rank 0, the only rank until tensor parallelism. `platform` outlives the plan.
// num_drafts: draft tokens that each step verifies per sequence.
Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelFiles& files,
                               const Platform& platform, int num_drafts = 0);

}  // namespace quire
