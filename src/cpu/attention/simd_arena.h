#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attn/backend.h"
#include "cpu/attention/simd_kernels.h"
#include "cpu/attention/simd_plan.h"

namespace quire::cpu {

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
    return reinterpret_cast<float*>((address + kAlignment - 1) / kAlignment * kAlignment);
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
