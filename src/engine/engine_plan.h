// All decisions at start that need no weights: types, context length, backends, memory. Impossible
// configurations fail here, before anything large is read or allocated.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/draft_model.h"
#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "model/model.h"
#include "model/weights.h"
#include "platform/platform.h"
#include "quire/config.h"
#include "sched/scheduler.h"

namespace quire {

struct AttentionSetup {
  std::vector<KvGroup> kv_groups;
  std::vector<AttentionSelector> selectors;  // one per KV group
  std::vector<AttentionPlans> plans;         // one per KV group
  std::vector<DecodeKey> decode_keys;        // the decode steps that the selectors distinguish
  size_t workspace_bytes = 0;                // the largest of any plan
};

// A drafter's model as the engine loads it beside the target.
struct DraftModelPlan {
  ModelLimits limits;
  WeightPlan weights;
  AttentionSetup attention;
};

struct EnginePlan {
  DType dtype = DType::kF32;  // of the checkpoint
  RunnerSizes sizes;
  WeightPlan weights;
  AttentionSetup attention;
  std::optional<DraftModelPlan> draft;  // absent: no model drafts
  MemoryRequest memory_request;
  MemoryPlan memory_plan;  // made from memory_request
  SchedulerConfig scheduler;
  bool calculates_kv_scales = false;  // EngineConfig::calculate_kv_scales
};

struct DraftRequest {
  int num_drafts = 0;                 // draft tokens that each step verifies per sequence
  const DraftModel* model = nullptr;  // null: no model drafts
  bool has_probs = false;             // the runner keeps the distributions of drafts
  bool by_lookup = false;             // DeviceContext::make_lookup_drafter makes the drafter
  bool is_adaptive = false;           // steps may verify fewer drafts than num_drafts
};

// Makes one plan per rank of the platform, by rank. They have the same blocks, also on all nodes,
// and differ in the ranks' devices and parts of the model. `platform` outlives the plans.
Result<std::vector<EnginePlan>> plan_ranks(const EngineConfig& config, const ModelFiles& files,
                                           const Platform& platform,
                                           const DraftRequest& drafts = {});
// The plan of a platform with one rank.
Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelFiles& files,
                               const Platform& platform, const DraftRequest& drafts = {});

// The limits of the drafter of a runner with these sizes.
DrafterLimits drafter_limits(const RunnerSizes& sizes);

// Reports the backend of each kind of step. A line names its KV group if there are several.
SelectionReport report_attention(const AttentionSetup& attention);

}  // namespace quire
