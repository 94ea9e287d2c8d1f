// The publishers of an engine's KV events: their configuration and their start.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine_parts.h"
#include "kv_events/publisher.h"
#include "quire/config.h"

namespace quire {

// Reads EngineConfig::kv_events_config. Errors lack the name of the setting, which the caller adds.
Result<KvEventsConfig> read_kv_events_config(std::string_view kv_events_config);

// Opens one publisher per replica, with its sockets. Returns an empty list if events are off.
Result<std::vector<std::unique_ptr<KvEventPublisher>>> open_kv_events(const EngineConfig& config);

// Starts a replica's publisher, and sets its SchedulerConfig to collect events. Call it before the
// EngineCore of the replica is made.
void start_kv_events(const EngineConfig& config, ReplicaParts& parts, KvEventPublisher& publisher);

}  // namespace quire
