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

// Opens the sockets of every replica, one publisher each. Returns none if events are off.
Result<std::vector<std::unique_ptr<KvEventPublisher>>> open_kv_events(const EngineConfig& config);

// Starts a replica's publisher, and sets its SchedulerConfig to collect events. Must be called
// before its EngineCore is made.
void start_kv_events(const EngineConfig& config, ReplicaParts& parts, KvEventPublisher& publisher);

}  // namespace quire
