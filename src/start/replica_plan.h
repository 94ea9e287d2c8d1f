// The plans of all replicas of the model, before anything is loaded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "start/plan.h"
#include "start/speculation.h"

namespace quire {

// The plans of a replica's ranks, and the model of its drafter.
struct PlannedEngine {
  std::vector<EnginePlan> plans;      // by rank
  std::unique_ptr<DraftModel> draft;  // opened, and in the plan; null: no model drafts
};

struct PlannedReplica {
  std::unique_ptr<Platform> platform;
  PlannedEngine engine;
};

// Opens the drafter's model, if a model drafts, and plans the engine with it. `platform` outlives
// the plan.
Result<PlannedEngine> plan_with_drafter(const EngineConfig& config, const Speculation& speculation,
                                        const ModelFiles& files, const Platform& platform);

// Plans all replicas of the configuration, one after the other. They serve the same context, but
// may have different numbers of KV blocks. nodes: null if there is one; with several, which have
// the same plan, there is one replica.
Result<std::vector<PlannedReplica>> plan_replicas(const EngineConfig& config,
                                                  const Speculation& speculation,
                                                  const ModelFiles& files,
                                                  const std::shared_ptr<Nodes>& nodes = nullptr);

// Logs the plan of the first replica, and what is different in the others.
void log_plans(const EngineConfig& config, std::span<const PlannedReplica> replicas,
               const ModelFiles& files);

// The weights of all ranks of a replica, those of other nodes included.
int64_t total_weight_bytes(std::span<const EnginePlan> ranks);

// One line about a CPU's threads; empty for other devices.
std::string describe_threads(const Platform& platform);

}  // namespace quire
