// Places of threads that are not bound to CPUs, for pools on machines with several nodes.
#pragma once

#include <vector>

#include "base/thread_pool.h"

namespace quire::testing {

// One thread per entry, of this node.
inline std::vector<ThreadPlace> on_nodes(const std::vector<int>& nodes) {
  std::vector<ThreadPlace> places;
  for (const int node : nodes) places.push_back({.cpus = {}, .node = node});
  return places;
}

}  // namespace quire::testing
