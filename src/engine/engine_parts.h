// From a configuration to everything that a running engine is made of.
#pragma once

#include <memory>
#include <vector>

#include "engine/engine_plan.h"
#include "engine/speculation.h"
#include "model/model_loader.h"
#include "platform/platform.h"
#include "quire/engine.h"

namespace quire {

// In the order in which each needs the ones before it.
struct EngineParts {
  std::unique_ptr<Platform> platform;
  std::unique_ptr<Model> model;
  KvCache kv_cache;
  std::unique_ptr<Drafter> drafter;  // null: the engine does not speculate
  std::vector<AttentionPlans> attention_plans;
  std::unique_ptr<Runner> runner;
  SchedulerConfig scheduler;
  ModelInfo info;
};

// Prints the memory plan, then loads files.weights and allocates.
Result<std::unique_ptr<EngineParts>> assemble_engine(const EngineConfig& config,
                                                     const Speculation& speculation,
                                                     ModelFiles& files,
                                                     const LoadProgress& progress);

}  // namespace quire
