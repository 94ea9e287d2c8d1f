// All decisions at start that need no weights: types, context length, backends, memory. Impossible
// configurations fail here, before anything large is read or allocated.
#pragma once

#include <vector>

#include "quire/config.h"
#include "start/engine_plan.h"
#include "start/model_files.h"

namespace quire {

// Makes one plan per rank of the platform, by rank. All ranks of all nodes have the same numbers of
// blocks; the plans differ in the ranks' devices and parts of the model. `platform` must outlive
// the plans. `freed_bytes` of other programs count as free memory, as if these had ended.
Result<std::vector<EnginePlan>> plan_ranks(const EngineConfig& config, const ModelFiles& files,
                                           const Platform& platform,
                                           const DraftRequest& drafts = {},
                                           int64_t freed_bytes = 0);
// The plan of a platform with one rank.
Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelFiles& files,
                               const Platform& platform, const DraftRequest& drafts = {});

}  // namespace quire
