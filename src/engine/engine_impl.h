// The members of a running engine. The start fills them in (start/start.cc).
#pragma once

#include <memory>
#include <vector>

#include "engine/engine_parts.h"
#include "engine/input_processor.h"
#include "engine/model_text.h"
#include "engine/replicas.h"
#include "kv_events/publisher.h"
#include "quire/engine.h"

namespace quire {

struct Engine::Impl {
  ModelText text;
  std::vector<KvEventsConfig> kv_event_sources;      // by data-parallel rank; empty: no events
  std::vector<std::unique_ptr<ReplicaParts>> parts;  // by replica
  std::unique_ptr<InputProcessor> input_processor;
  std::shared_ptr<Replicas> replicas;  // last member: its threads use everything above
};

}  // namespace quire
