// The publishers of an engine's KV events: their configuration and their start.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine_parts.h"
#include "kv_events/publisher.h"
#include "quire/config.h"

namespace quire {

// Reads EngineConfig::kv_events_config. Errors begin with the wrong key; the caller adds the name
// of its setting.
Result<KvEventsConfig> read_kv_events_config(std::string_view kv_events_config);

// Opens the sockets of every replica; empty if the configuration publishes nothing.
Result<std::vector<std::unique_ptr<KvEventPublisher>>> open_kv_events(const EngineConfig& config);

// Starts a replica's publisher, and lets its scheduler collect events.
void start_kv_events(const EngineConfig& config, ReplicaParts& parts, KvEventPublisher& publisher);

}  // namespace quire
