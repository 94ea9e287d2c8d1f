// Which pieces of a phase's attention are handed to threads: decided once a step, from bounds.
// Nothing here changes a result, only who computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn/backend.h"

namespace quire::cpu {

inline constexpr int kRowsPerItem = 32;  // that share each K and V block; more if a group is larger

// Some query tokens of one request against one partition of its context, or against all of it;
// done once for each KV head.
struct WorkItem {
  int32_t req = 0;
  int32_t first_query = 0;
  int32_t num_queries = 0;
  int32_t partition = -1;      // counted from the first one that the queries see; -1: all
  int32_t num_partitions = 0;  // upper bound, of a split item
  int32_t split_idx = 0;       // which split item; its pending counts lie at split_idx * kv heads
  int64_t first_partial = 0;   // where its partial results begin, counted in partials
};

struct PhasePlan {
  std::vector<WorkItem> items;
  int64_t num_partials = 0;
  bool worth_threads = false;
};

// How a shape is cut, and how much memory that takes. A plan and a workspace size come from the
// same numbers.
class WorkSplit {
 public:
  WorkSplit(const AttentionShape& shape, int num_threads);

  int group() const { return group_; }
  int queries_per_item() const { return queries_per_item_; }
  int max_rows() const { return queries_per_item_ * group_; }

  // `items` keeps its capacity between steps.
  void plan(const AttentionBatch& batch, const PhaseRange& range, PhasePlan& out) const;

  // Groups of partials that may be pending at once: each is more than a 1/(4 threads) share of the
  // work, so there are fewer than 4 * threads of them.
  static int max_split_groups(int num_threads) { return 4 * num_threads; }
  // Partials that any plan of contexts up to max_kv_len needs.
  int64_t max_partials(int max_kv_len) const;

 private:
  int64_t visible_tokens(int kv_len, int q_len, int first_query, int num_queries) const;
  int partition_bound(int64_t visible) const;
  void append_split(const WorkItem& item, int num_partitions, PhasePlan& out) const;

  const AttentionShape& shape_;
  int num_threads_;
  int group_;
  int queries_per_item_;
  int64_t partial_budget_;  // partials; more than that are never split off
};

// Floats of one partial: max, sum and unnormalized output of each row.
int64_t partial_floats(const AttentionShape& shape, int num_rows);

}  // namespace quire::cpu
