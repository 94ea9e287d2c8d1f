// Connects node 0 with every other node. Both sides prove that they have the same token without
// sending it, and node 0 compares the settings of the nodes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "nodes/messages.h"
#include "nodes/node_place.h"
#include "nodes/socket.h"
#include "quire/status.h"

namespace quire {

struct NodesConfig {
  NodePlace place;
  // Empty: no token, allowed only with a loopback address of node 0.
  std::string token;
  NodeSettings settings;
  std::chrono::milliseconds meet_timeout = std::chrono::minutes(10);
  // A node that is silent for this long has failed.
  std::chrono::milliseconds silence_timeout = std::chrono::seconds(20);
};

struct ConnectedNode {
  int node = 0;
  std::string host;  // the host name that it reports
  Socket socket;
};

// Checks this node's part of a rendezvous without the other nodes: the address, the port and the
// token. Returns the result as text.
Result<std::string> check_rendezvous(const NodesConfig& config);

// Connects the nodes and waits until all are connected. On node 0, returns the other nodes, by
// number. On any other node, returns node 0.
Result<std::vector<ConnectedNode>> meet_nodes(const NodesConfig& config);

}  // namespace quire
