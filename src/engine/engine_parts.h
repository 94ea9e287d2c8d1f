// The parts of a running engine. The start makes them (start/load.h), and the engine owns them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/model.h"
#include "nodes/nodes.h"
#include "platform/platform.h"
#include "platform/runner.h"
#include "quire/engine.h"
#include "sched/scheduler.h"

namespace quire {

struct AttentionSetup {
  std::vector<KvGroup> kv_groups;
  StateGroup states = {};                         // in the same KvCache as the KV groups
  std::vector<AttentionSelector> selectors = {};  // one per KV group
  std::vector<AttentionPlans> plans = {};         // one per KV group
  std::vector<DecodeKey> decode_keys = {};  // one per decode step that the selectors distinguish
  size_t workspace_bytes = 0;               // of the plan that needs the most
};

// A model on one device, with everything that its runner needs there.
struct LoadedModel {
  std::unique_ptr<Model> model;
  KvCache kv_cache;
  AttentionSetup attention;

  // Points into this object.
  ModelInstance instance() const {
    return {.model = model.get(),
            .kv_cache = &kv_cache,
            .attention = attention.selectors,
            .plans = attention.plans};
  }
};

// The parts of one rank, on its device.
struct RankParts {
  LoadedModel target;
  LoadedModel draft;  // empty: no draft model
};

// The parts of one replica. Each member uses the members before it.
struct ReplicaParts {
  std::shared_ptr<Nodes> nodes;  // null: a single node
  std::unique_ptr<Platform> platform;
  std::vector<RankParts> ranks;    // of this process
  std::unique_ptr<Runner> runner;  // of all ranks on node 0; of `ranks` on other nodes
  SchedulerConfig scheduler;
  int64_t num_kv_tokens = 0;  // capacity of the KV cache
  ModelInfo info;
};

}  // namespace quire
