// The start of an engine whose ranks are on several nodes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nodes/nodes.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

struct ModelFiles;

// Fills in the launcher's values (nodes/node_place.h): nnodes is then at least 1, and node_rank at
// least 0. Fails if the ranks cannot be divided among the nodes.
Result<EngineConfig> place_node(EngineConfig config);

// Waits for the other nodes; null on a single node. Fails if they have another model, another
// version of Quire, or other settings that their steps depend on.
Result<std::shared_ptr<Nodes>> connect_nodes(const EngineConfig& config, const ModelFiles& files);

// Calls check_rendezvous() (nodes/rendezvous.h) for this node.
Result<std::string> check_own_node(const EngineConfig& config);

// Returns `source`, but its reads fail once the nodes have failed, because loading the rest of a
// model may take minutes. nodes: null on a single node.
std::unique_ptr<WeightSource> stop_with_nodes(std::unique_ptr<WeightSource> source,
                                              std::shared_ptr<Nodes> nodes);

}  // namespace quire
