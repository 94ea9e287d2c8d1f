// Splits a phase's attention into work items for the threads, once per step, from upper bounds of
// the lengths. The split affects only which thread computes a result, not the result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "base/numbers.h"
#include "cpu/attention/simd_kernels.h"

namespace quire::cpu {

inline constexpr int kRowsPerItem = 32;  // rows per K and V block; more if a group is larger

// Some query tokens of one request over one partition of its context, or over all of it. An item is
// one unit of work per KV head.
struct WorkItem {
  int32_t req = 0;
  int32_t first_query = 0;
  int32_t num_queries = 0;
  int32_t partition = -1;      // counted from the first partition that is visible to the queries;
                               // -1: all
  int32_t num_partitions = 0;  // of a split item; upper bound
  int32_t split_idx = 0;       // index among the split items
  int64_t first_partial = 0;   // index of its first partial result
};

struct PhasePlan {
  std::vector<WorkItem> items;
  int64_t num_partials = 0;
  bool uses_threads = false;
};

// Splits the work of a shape and computes the memory that the split needs, so that the plan and the
// workspace size agree.
class WorkSplitter {
 public:
  WorkSplitter(const AttentionShape& shape, int num_threads);

  int group() const { return group_; }
  int max_rows() const { return queries_per_item_ * group_; }

  // Writes the plan into `out`, which is reused from step to step without reallocation.
  void plan(const AttentionBatch& batch, const PhaseRange& range, PhasePlan& out) const;

  // A split group is a split item for one KV head. Each has more than 1 / (4 * num_threads) of the
  // work, so there are fewer than 4 * num_threads of them.
  static int max_split_groups(int num_threads) { return 4 * num_threads; }
  // Upper bound of the partials of any plan with contexts up to max_kv_len.
  int64_t max_partials(int max_kv_len) const;

 private:
  int64_t visible_tokens(int kv_len, int q_len, int first_query, int num_queries) const;
  int partition_bound(int64_t visible) const;
  void append_split(const WorkItem& item, int num_partitions, PhasePlan& out) const;

  const AttentionShape& shape_;
  int num_threads_;
  int group_;
  int queries_per_item_;
  int64_t partial_budget_;  // upper bound of the partials in a plan
};

// Size of one partial in floats: max, sum and unnormalized output of each row.
int64_t partial_floats(const AttentionShape& shape, int num_rows);

// Divides the arena into scratch per thread, followed by the partials of split items.
class ArenaLayout {
 public:
  ArenaLayout(const AttentionShape& shape, int max_rows)
      : max_rows_(max_rows),
        q_(max_rows * pad_lanes(shape.head_dim)),
        scores_(int64_t{max_rows} * kTileTokens),
        sums_(int64_t{max_rows} * kMaxLanes),
        block_(kBlockTokens * pad_lanes(std::max(shape.head_dim, shape.head_dim_v))),
        partial_(partial_floats(shape, max_rows)) {}

  size_t num_bytes(int num_threads, int64_t num_partials) const {
    const int64_t floats = num_threads * thread_floats() + num_partials * partial_;
    return static_cast<size_t>(floats) * sizeof(float) + kAlignment;
  }
  static float* aligned_base(std::span<std::byte> workspace) {
    const auto address = reinterpret_cast<uintptr_t>(workspace.data());
    return reinterpret_cast<float*>(round_up(address, kAlignment));
  }

  TaskScratch scratch(float* base, int thread_idx) const {
    float* q = base + thread_idx * thread_floats();
    return {q, q + q_, q + q_ + scores_, q + q_ + scores_ + sums_};
  }
  // A thread's own partials: the running result and the current partition.
  Partial running(float* base, int thread_idx, int which) const {
    return partial_at(base + thread_idx * thread_floats() + q_ + scores_ + sums_ + block_ +
                      which * partial_);
  }
  Partial shared_partial(float* base, int num_threads, int64_t idx) const {
    return partial_at(base + num_threads * thread_floats() + idx * partial_);
  }

 private:
  static constexpr size_t kAlignment = 64;

  int64_t thread_floats() const { return q_ + scores_ + sums_ + block_ + 2 * partial_; }
  Partial partial_at(float* at) const {
    return {at, at + pad_lanes(max_rows_), at + 2 * pad_lanes(max_rows_)};
  }

  int max_rows_;
  int64_t q_, scores_, sums_, block_, partial_;
};

}  // namespace quire::cpu
