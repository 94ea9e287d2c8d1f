// Loads planned replicas onto their devices, and makes the runners.
#pragma once

#include <memory>
#include <span>

#include "engine/engine_parts.h"
#include "start/replica_plan.h"

namespace quire {

// Loads files.weights onto the device that `plan` was made for, probes a quantized KV cache
// (probe_kv_cache()), allocates the cache, and moves the attention plans out of `plan`. Fails if
// any of this fails.
Result<LoadedModel> load_onto(DeviceContext& context, const ModelFiles& files, EnginePlan& plan,
                              const LoadProgress& progress = {});
// Makes a runner for a target that was loaded by `plan`. `target` and the objects to which `drafts`
// points must outlive the runner.
Result<std::unique_ptr<Runner>> make_runner(DeviceContext& context, const LoadedModel& target,
                                            const EnginePlan& plan, const DraftSource& drafts,
                                            const Verification& verification = {});

// Loads all replicas at the same time, each into its element of `replicas`, whose `nodes` is
// already set. After an error, `replicas` holds the parts made until then.
Status load_replicas(const EngineConfig& config, const Speculation& speculation,
                     const ModelFiles& files, std::span<PlannedReplica> planned,
                     const LoadProgress& progress,
                     std::span<const std::unique_ptr<ReplicaParts>> replicas);

}  // namespace quire
