// The plans of all replicas of the model, before anything is loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "start/draft_model.h"
#include "start/plan.h"

namespace quire {

struct PlannedReplica {
  std::unique_ptr<Platform> platform;
  std::unique_ptr<DraftModel> draft;  // opened, and part of the plans; null: no model drafts
  std::vector<EnginePlan> plans;      // by rank
};

// settle_method() of speculation.h for the checkpoint of these files.
Result<Speculation> settle_method(const Speculation& speculation, const EngineConfig& config,
                                  const ModelFiles& files);

// Plans all replicas of the configuration, one after the other, and appends them to `replicas`.
// They serve the same context, but may have different numbers of KV blocks. After an error,
// `replicas` holds the replicas made until then, because destroying a platform may take long and
// the other nodes must receive the error first. nodes: null on a single node; several nodes have
// one replica. freed_bytes: see plan_ranks().
Status plan_replicas(const EngineConfig& config, const Speculation& speculation,
                     const ModelFiles& files, const std::shared_ptr<Nodes>& nodes,
                     std::vector<PlannedReplica>& replicas, int64_t freed_bytes = 0);

}  // namespace quire
