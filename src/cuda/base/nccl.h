// The ranks of one model on the GPUs of one process, or of several processes (nodes) with equal
// numbers of GPUs. NCCL connects them; the library is loaded when it is needed.
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

// Every rank calls the collectives in the same order; each rank enqueues into its own stream. The
// collectives can be captured in graphs, if all ranks then replay the same graphs. NVLink multicast
// is never used.
class NcclRanks {
 public:
  // Connects the GPUs of this process with these indices, by rank, with each other and with the
  // GPUs of `nodes` (null: a single node). Fails with kUnavailable without NCCL. NCCL allocates
  // nothing after this returns.
  static Result<std::shared_ptr<NcclRanks>> connect(std::span<const int> devices,
                                                    std::shared_ptr<Nodes> nodes = nullptr);
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int size() const;        // of all nodes
  int first_rank() const;  // of this process; its ranks are adjacent
  // Replaces x by the sum over all ranks. x is F32, F16 or BF16; all ranks get the same bits.
  void all_reduce(int rank, const TensorView& x, CudaStream& stream);
  // Concatenates the bytes at `part` of all ranks into `gathered`, in rank order.
  void all_gather(int rank, const void* part, size_t num_bytes, void* gathered, CudaStream& stream);
  // Sets the function that the first rank to fail calls once, to release ranks that wait elsewhere.
  // Must be called before the first join().
  void on_failure(std::function<void()> release);
  // The barrier at which the ranks of this process wait for each other. A rank that passes an error
  // there ends the collectives in which the other ranks wait.
  RankJoin& joint();

 private:
  struct Impl;
  explicit NcclRanks(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace quire::cuda
