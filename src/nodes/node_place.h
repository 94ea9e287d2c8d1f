// The place of this process among the nodes: the processes, usually one per machine, that share the
// ranks of one model.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire {

inline constexpr int kMaxNodes = 64;
inline constexpr int kDefaultMasterPort = 29501;

// The fields of EngineConfig.
struct NodeFlags {
  int nnodes = 1;           // 0: the number that the launcher started
  int node_rank = -1;       // -1: the launcher's number of this process
  std::string master_addr;  // empty: MASTER_ADDR, or the launcher's first machine
  int master_port = 0;      // 0: MASTER_PORT, or kDefaultMasterPort
};

struct NodePlace {
  int num_nodes = 1;
  int node = 0;
  std::string master_addr;  // of node 0; empty with one node
  int master_port = kDefaultMasterPort;
};

// The value of an environment variable; null: it is not set.
using Environment = std::function<const char*(const char* name)>;

// Reads the variables of Open MPI, of PMI (MPICH, Intel MPI), of a LeaderWorkerSet, of torchrun and
// of Slurm, in this order, because MPI is often started within a Slurm job. They are read only if
// `nnodes` is not 1, and never for a value that the flags give. kInvalidArgument if a value is
// missing, malformed, or contradicts a flag.
Result<NodePlace> find_node_place(const NodeFlags& flags, const Environment& environment);

// Returns "gpu-03" for Slurm's "gpu-[03-07,9],cpu1"; empty: malformed.
std::string first_slurm_host(std::string_view node_list);

}  // namespace quire
