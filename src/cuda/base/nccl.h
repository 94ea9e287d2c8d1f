// The ranks of one model on GPUs of one process, or of several, the nodes, with equally many GPUs
// each. NCCL connects them, which is loaded when it is needed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/rank_join.h"
#include "cuda/base/stream.h"
#include "nodes/nodes.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// Every rank calls the collectives in the same order; each enqueues into its own stream. They can
// be captured in graphs, which all ranks then replay alike. NVLink multicast is never used.
class NcclRanks {
 public:
  // Connects the GPUs of this process with these indices, by rank, with each other and with those
  // of `nodes` (null: there are none). Fails with kUnavailable without NCCL. What NCCL allocates is
  // allocated when this returns.
  static Result<std::shared_ptr<NcclRanks>> connect(std::span<const int> devices,
                                                    std::shared_ptr<Nodes> nodes = nullptr);
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int size() const;        // of all nodes
  int first_rank() const;  // of this process; its ranks are adjacent
  // x = the sum of every rank's x, in F32, F16 or BF16, with the same bits on all ranks.
  void all_reduce(int rank, const TensorView& x, CudaStream& stream);
  // gathered = every rank's bytes at `part`, one rank after the other.
  void all_gather(int rank, const void* part, size_t num_bytes, void* gathered, CudaStream& stream);
  // Called once by the first rank that fails, to release ranks that wait for it elsewhere. Set
  // before the first join().
  void on_failure(std::function<void()> release);
  // Where the ranks of this process wait for each other. A rank that passes an error there ends the
  // collectives in which the others wait.
  RankJoin& joint();

 private:
  struct Impl;
  explicit NcclRanks(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace quire::cuda
