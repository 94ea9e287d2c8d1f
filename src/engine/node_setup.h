// The start of an engine whose ranks are on several nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/draft_model.h"
#include "engine/engine_plan.h"
#include "engine/model_files.h"
#include "nodes/nodes.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

// Fills in what the launcher says (nodes/node_place.h): nnodes is then at least 1, and node_rank at
// least 0. Fails if the nodes cannot divide the ranks.
Result<EngineConfig> place_node(EngineConfig config);

// The ranks of this process. `config` is a result of place_node().
inline int num_local_ranks(const EngineConfig& config) {
  return config.tensor_parallel_size / std::max(config.nnodes, 1);
}

// Waits for the other nodes; null if there are none. Fails if they have another model, another
// version of Quire, or other settings that their steps depend on.
Result<std::shared_ptr<Nodes>> connect_nodes(const EngineConfig& config, const ModelFiles& files);

// nodes/rendezvous.h's check_rendezvous() for this node.
Result<std::string> check_own_node(const EngineConfig& config);

// `source`, which cannot be read any more once the nodes have failed: to load the rest of a model
// may take minutes. nodes: null if there is one.
std::unique_ptr<WeightSource> stop_with_nodes(std::unique_ptr<WeightSource> source,
                                              std::shared_ptr<Nodes> nodes);

// Fails if CPUs of several nodes could not exchange the results of a step's tokens.
Status check_step_message(int64_t num_tokens, int64_t hidden_size, int num_ranks);

// Fails unless all nodes have the same value. nodes: null if there is one.
Status check_same(Nodes* nodes, std::string_view what, std::string_view value);
// Fails unless all nodes have resolved their settings alike, and have the same model that drafts.
// draft: null if no model drafts.
Status check_same_plan(Nodes* nodes, const EnginePlan& plan, const DraftModel* draft);

}  // namespace quire
