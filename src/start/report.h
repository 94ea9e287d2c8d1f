// The report of a start, for the log and for `quire doctor`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "attn/selection.h"
#include "start/replica_plan.h"

namespace quire {

// Logs the plan of the first replica, and the differences of the other replicas.
void log_plans(const EngineConfig& config, std::span<const PlannedReplica> replicas,
               const ModelFiles& files);

// Reports the backend of each kind of step. A line names its KV group if there are several.
SelectionReport report_attention(const AttentionSetup& attention);

// The weights of all ranks of a replica, including the ranks of other nodes.
int64_t total_weight_bytes(std::span<const EnginePlan> ranks);

// Returns one line about a CPU's threads; empty for other devices.
std::string describe_threads(const Platform& platform);

}  // namespace quire
