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

// The settings of EngineConfig with these names.
struct NodeFlags {
  int nnodes = 1;           // 0: the number of processes that the launcher started
  int node_rank = -1;       // -1: the launcher's number of this process
  std::string master_addr;  // empty: MASTER_ADDR, or node 0's machine by the launcher
  int master_port = 0;      // 0: MASTER_PORT, or kDefaultMasterPort
};

struct NodePlace {
  int num_nodes = 1;
  int node = 0;             // the number of this process, from 0
  std::string master_addr;  // of node 0; empty with one node
  int master_port = kDefaultMasterPort;
};

// Looks up an environment variable. Returns null if it is not set.
using Environment = std::function<const char*(const char* name)>;

// Completes the flags from the variables of Open MPI, of PMI (MPICH, Intel MPI), of a
// LeaderWorkerSet, of torchrun and of Slurm. Uses the first launcher whose variables are set. MPI
// precedes Slurm, because MPI is often started within a Slurm job. If `nnodes` is 1, reads no
// variable. If `nnodes` and `node_rank` are both given, ignores the launcher's count and rank.
// kInvalidArgument if a value is missing or malformed, or if the launcher contradicts a flag.
Result<NodePlace> find_node_place(const NodeFlags& flags, const Environment& environment);

// Returns "gpu-03" for Slurm's "gpu-[03-07,9],cpu1"; empty: the list is empty or malformed.
std::string first_slurm_host(std::string_view node_list);

}  // namespace quire
