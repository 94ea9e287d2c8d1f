// The ranks of one model on a CPU: groups of threads of one process, which share its memory, or of
// several processes, the nodes, with equal numbers of ranks. Each computes its part of every layer,
// and they exchange results here.
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

// Every rank calls the same functions in the same order, each from one thread. A rank that fails
// calls join() at once. From then on, every collective returns at once without a result, and join()
// returns the error: no rank waits for a failed one.
class RankGroup {
 public:
  // `num_local`: ranks of this process. nodes: null with one node.
  explicit RankGroup(int num_local, std::shared_ptr<Nodes> nodes = nullptr);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int size() const { return static_cast<int>(views_.size()); }
  int num_local() const { return num_local_; }
  int first_rank() const { return nodes_ == nullptr ? 0 : nodes_->node() * num_local_; }
  // Collectives so far, a sign of progress.
  int64_t num_collectives() const { return num_collectives_.load(); }

  // x = the sum of every rank's x, F32. The terms are added in the order of the ranks, so the bits
  // are the same on all ranks, in every run, and for any division of the ranks among nodes. `pool`
  // is the rank's own.
  void all_reduce(int rank, const TensorView& x, ThreadPool& pool);
  // Collectives::all_gather_columns().
  void all_gather_columns(int rank, const TensorView& part, const TensorView& whole,
                          ThreadPool& pool);
  // whole = every rank's part, one after the other; all have the same size.
  void all_gather(int rank, std::span<std::byte> part, std::span<std::byte> whole);
  // Gives every rank the values of rank 0.
  void broadcast(int rank, std::span<int32_t> values);
  // Ends a step, or the start (RankJoin::join).
  Status join(const Status& status) { return join_.join(status); }

 private:
  // Waits until all ranks of this process have made the same number of calls. False: a rank has
  // failed.
  bool barrier();
  // Publishes this rank's tensor, and waits for the tensors of the other ranks, which have the same
  // number of rows.
  enum class Widths { kSame, kAny };
  bool publish(int rank, const TensorView& view, Widths widths);
  // Gives every node the tensors of all ranks. The tensors of other nodes are in received_.
  Status exchange_views(Widths widths);
  std::span<TensorView> local_views() {
    return std::span(views_).subspan(static_cast<size_t>(first_rank()),
                                     static_cast<size_t>(num_local_));
  }

  const int num_local_;
  const std::shared_ptr<Nodes> nodes_;
  std::vector<TensorView> views_;     // by rank, of the current collective
  std::vector<NodeTensor> received_;  // by rank, of the current collective
  std::atomic<int64_t> num_collectives_ = 0;
  std::atomic<int> num_arrived_ = 0;
  std::atomic<uint32_t> num_rounds_ = 0;
  RankJoin join_;
};

}  // namespace quire
