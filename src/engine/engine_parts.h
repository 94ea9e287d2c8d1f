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

// A model on one device, and what a runner needs of it there.
struct LoadedModel {
  std::unique_ptr<Model> model;
  KvCache kv_cache;
  AttentionSetup attention;

  // Points into this object.
  ModelInstance instance() const;
};

// Loads files.weights onto the device that `plan` was made for, allocates the cache, and takes over
// the plan's attention.
Result<LoadedModel> load_onto(DeviceContext& context, const ModelFiles& files, EnginePlan& plan,
                              const LoadProgress& progress = {});

// A runner of one model, loaded by this plan. `target` and `drafter` (or null) outlive it.
Result<std::unique_ptr<Runner>> make_runner(DeviceContext& context, const LoadedModel& target,
                                            const EnginePlan& plan, Drafter* drafter);

// Members are in the order in which each needs the ones before it. All are of rank 0, the only one
// until tensor parallelism.
struct EngineParts {
  std::unique_ptr<Platform> platform;
  LoadedModel target;
  std::unique_ptr<Drafter> drafter;  // null: the engine does not speculate
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
