// The ranks of one model on a CPU. Each rank is a group of threads. The ranks share the memory of
// one process, or belong to several processes (nodes) with equal numbers of ranks. Each rank
// computes its part of every layer; this class exchanges their results.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/rank_join.h"
#include "base/thread_pool.h"
#include "nodes/nodes.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// A tensor of a rank on another node.
struct NodeTensor {
  int64_t num_rows = 0;
  int64_t num_columns = 0;
  std::vector<uint8_t> bytes;
};

// Every rank calls the same functions in the same order, from one thread per rank. A rank that
// fails must call join() immediately. After that, every collective returns immediately without a
// result, and join() returns the error, so that no rank waits for a failed rank.
class RankGroup {
 public:
  // `num_local`: the ranks of this process. nodes: null for a single node.
  explicit RankGroup(int num_local, std::shared_ptr<Nodes> nodes = nullptr);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int size() const { return static_cast<int>(views_.size()); }
  int num_local() const { return num_local_; }
  int first_rank() const { return nodes_ == nullptr ? 0 : nodes_->node() * num_local_; }
  // Returns the number of collectives so far, by which progress can be detected.
  int64_t num_collectives() const { return num_collectives_.load(); }

  // Replaces x by the sum of the x of all ranks, F32. The terms are added in the order of the
  // ranks, so the bits are the same on all ranks, in every run, and for any division of the ranks
  // among nodes. `pool` is the rank's own thread pool.
  void all_reduce(int rank, const TensorView& x, ThreadPool& pool);
  // Collectives::all_gather_columns().
  void all_gather_columns(int rank, const TensorView& part, const TensorView& whole,
                          ThreadPool& pool);
  // Copies the parts of all ranks to `whole`, in the order of the ranks. All parts have the same
  // size.
  void all_gather(int rank, std::span<std::byte> part, std::span<std::byte> whole);
  // Copies the values of rank 0 to every rank.
  void broadcast(int rank, std::span<int32_t> values);
  // Ends a step or the start; see RankJoin::join().
  Status join(const Status& status) { return join_.join(status); }

 private:
  // Waits until all ranks of this process have made the same number of calls. Returns false if a
  // rank has failed.
  bool barrier();
  // Publishes this rank's tensor, and waits for the tensors of the other ranks, which have the same
  // number of rows.
  enum class Widths { kSame, kAny };
  bool publish(int rank, const TensorView& view, Widths widths);
  // Sends the tensors of this node's ranks to all other nodes. The tensors of other nodes arrive in
  // received_.
  Status exchange_views(Widths widths);
  std::span<TensorView> local_views() {
    return std::span(views_).subspan(static_cast<size_t>(first_rank()),
                                     static_cast<size_t>(num_local_));
  }

  const int num_local_;
  const std::shared_ptr<Nodes> nodes_;
  std::vector<TensorView> views_;     // by rank, for the current collective
  std::vector<NodeTensor> received_;  // by rank, for the current collective
  std::atomic<int64_t> num_collectives_ = 0;
  std::atomic<int> num_arrived_ = 0;
  std::atomic<uint32_t> num_rounds_ = 0;
  RankJoin join_;
};

}  // namespace quire
