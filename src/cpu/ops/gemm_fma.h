// Computes out = x · Wᵀ + bias with F32 fused multiply-adds, for every weight format and every
// machine.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/row_group.h"

namespace quire::cpu {

inline constexpr int64_t kBlockPanels = 2;  // panels per task: 64 features
inline constexpr int64_t kBlockRows = 256;
inline constexpr int64_t kBlockK = 128;  // depth of a weight block that stays in cache as F32

// Some rows by some panels.
struct FmaTask {
  const std::byte* panels;
  int64_t num_panels;  // at most kBlockPanels
  int64_t padded_k;
  const float* x;  // [num_rows, num_k]
  int64_t num_rows;
  int64_t num_k;
  float* weights_scratch;
  float* sums;  // out: [num_rows, kBlockPanels * 32]
};

// Scratch of each thread, allocated once so that linear() allocates nothing.
class FmaScratch {
 public:
  static Result<FmaScratch> make(int num_threads);
  float* weights(int thread_idx) const;  // [kBlockK, kBlockPanels * 32]
  float* sums(int thread_idx) const;     // [kBlockRows, kBlockPanels * 32]

 private:
  Buffer buffer_;
};

// x: rows of in_features, out: rows of out_features, both dense. A single group may have any number
// of rows.
void linear_fma(std::span<const RowGroup> groups, const float* x, float* out, ThreadPool& pool,
                const FmaScratch& scratch);

}  // namespace quire::cpu
