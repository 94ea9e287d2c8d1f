// The ranks of one model on a CPU: groups of threads of one process, which share its memory. Each
// computes its part of every layer, and they exchange results here.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rank_join.h"
#include "base/thread_pool.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// Every rank calls the same functions in the same order, each from one thread. A rank that fails
// calls join() at once. From then on, every collective returns at once without a result, and join()
// returns the error: no rank waits for one that has left.
class RankGroup {
 public:
  explicit RankGroup(int size);
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int size() const { return static_cast<int>(views_.size()); }

  // x = the sum of every rank's x, F32. The terms are added in the order of the ranks, so the bits
  // are the same on all ranks and in every run. `pool` is the rank's own.
  void all_reduce(int rank, const TensorView& x, ThreadPool& pool);
  // Ops::all_gather_columns().
  void all_gather_columns(int rank, const TensorView& part, const TensorView& whole,
                          ThreadPool& pool);
  // Gives every rank the values of rank 0.
  void broadcast(int rank, std::span<int32_t> values);
  // Ends a step, or the start (RankJoin::join).
  Status join(const Status& status) { return join_.join(status); }

 private:
  // Waits until all ranks have made the same number of calls. False: a rank has failed.
  bool barrier();
  // Publishes this rank's tensor, and waits for those of the others.
  bool publish(int rank, const TensorView& view);

  std::vector<TensorView> views_;  // by rank, of the current collective
  std::atomic<int> num_arrived_ = 0;
  std::atomic<uint32_t> num_rounds_ = 0;
  RankJoin join_;
};

}  // namespace quire
