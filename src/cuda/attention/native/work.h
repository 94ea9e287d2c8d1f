// The work of the thread blocks of kRows8 and kRows64 in a ragged batch. The launch has as many
// thread blocks as for requests of equal length, because a graph's launch does not depend on
// lengths. Therefore, long requests get more thread blocks than in an even batch, and short
// requests share one. Any plan is correct for any lengths; the plan only decides how long the
// slowest thread block takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/attention/native/kernels.h"

namespace quire::cuda::native {

// All numbers are per KV head. The thread blocks of a cluster have the same work.
struct WorkLimits {
  int num_parts = 1;         // clusters per request of an even batch
  int clusters_at_once = 1;  // clusters that the GPU runs at once
  int max_split = 1;         // only these first clusters may have parts of split requests
  int extra_tokens = 0;      // positions that take as long as the start or the merge of a part

  friend bool operator==(const WorkLimits&, const WorkLimits&) = default;
};

// The limits of a batch of `choice`, which shares work.
WorkLimits work_limits(const AttentionShape& shape, const KernelChoice& choice, int num_reqs,
                       const GpuTraits& gpu);

class WorkPlanner {
 public:
  // Later calls of plan() allocate nothing if they stay within these numbers.
  void reserve(int num_reqs, int num_clusters);

  // Plans requests of these lengths. Returns whether the work differs from the last call's.
  // Sequences that grow by a few tokens keep their work.
  bool plan(std::span<const int32_t> lens, const WorkLimits& limits);
  // Makes the next plan() return true, because the device does not have the last plan.
  void forget();

  // Whether each request has limits.num_parts clusters, in the order of the requests.
  bool is_even() const { return is_even_; }
  std::span<const ClusterWork> clusters() const { return clusters_; }
  std::span<const int32_t> more_reqs() const { return more_reqs_; }

 private:
  bool is_like_last(std::span<const int32_t> lens, const WorkLimits& limits) const;
  int64_t find_most_tokens();
  int split_count(int32_t len, int64_t most_tokens) const;
  template <class Visit>
  int pack_short(size_t first, int64_t most_tokens, const Visit& visit) const;
  int num_short_clusters(size_t first, int64_t most_tokens) const;
  bool fits(int64_t most_tokens) const;
  void make_even();
  void share(int64_t most_tokens);

  // The arguments and the result of the last plan().
  WorkLimits limits_;
  std::vector<int32_t> lens_;
  bool is_even_ = false;
  std::vector<ClusterWork> clusters_;
  std::vector<int32_t> more_reqs_;

  std::vector<int32_t> longest_first_;  // requests
};

}  // namespace quire::cuda::native
