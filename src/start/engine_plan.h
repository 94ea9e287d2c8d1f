// The plan of one rank's engine, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_parts.h"
#include "model/weights.h"
#include "platform/runner.h"
#include "sched/scheduler.h"
#include "start/draft_model.h"
#include "start/memory_plan.h"

namespace quire {

// A model of the engine: the target, or the model that drafts for it.
struct ModelPlan {
  ModelLimits limits;
  std::vector<int> decode_q_lens;  // query tokens per sequence in decode steps, ascending
  WeightPlan weights;
  int64_t activation_bytes = 0;
  AttentionSetup attention;
};

struct EnginePlan {
  DType dtype = DType::kF32;  // of the checkpoint
  std::string shape_key;      // RunnerParts::shape_key
  RunnerSizes sizes;
  ModelPlan target;
  std::optional<ModelPlan> draft;  // absent: no model drafts
  MemoryRequest memory_request;
  MemoryPlan memory_plan;  // made from memory_request
  SchedulerConfig scheduler;
  bool calculates_kv_scales = false;  // EngineConfig::calculate_kv_scales
};

// The drafts for which a plan needs memory.
struct DraftRequest {
  int num_drafts = 0;                 // draft tokens that each step verifies per sequence
  const DraftModel* model = nullptr;  // null: no model drafts
  bool has_probs = false;             // the runner keeps the distributions of drafts
  bool by_lookup = false;             // the runner drafts by lookup
  bool is_adaptive = false;           // steps may verify fewer drafts than num_drafts
};

}  // namespace quire
