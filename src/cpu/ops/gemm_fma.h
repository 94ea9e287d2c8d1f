// Computes out = x · Wᵀ + bias with F32 fused multiply-adds, for every weight format and every
// machine.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/row_group.h"

namespace quire::cpu {

inline constexpr int64_t kBlockPanels = 2;  // panels per task: 64 features
// The depth of a slice. With AVX2, a slice of 32 features as F32 and the activations of a batch of
// rows fit in an L1 of 32 KiB, and a slice of the activations of 256 rows and their sums fit in an
// L2 of 512 KiB. With AVX-512, a slice has 64 features.
inline constexpr int64_t kSliceDepth = 128;
inline constexpr int64_t kSliceFloats = kSliceDepth * kBlockPanels * kPanelWidth;

// Multiplies some rows by some panels.
struct FmaTask {
  const std::byte* panels;
  const std::byte* next_panels;  // panels of the task that the thread probably runs next; or null
  int64_t num_panels;            // at most kBlockPanels
  int64_t padded_k;
  const float* x;         // [num_rows, num_k]
  const float* packed_x;  // x in slices: [slice][batch][k of the slice][row of the batch]
  int64_t num_rows;       // 1 to kMaxGroupedRows
  int64_t num_k;
  float* slice;  // scratch memory of kSliceFloats
  float* sums;   // out: [num_rows, kBlockPanels * 32]
};

// Scratch memory for the activations, which all threads share, and for converted weights and sums
// per thread. It is allocated when a Linear is made, so that linear() allocates nothing.
class FmaScratch {
 public:
  // For matrices of up to `in_features`.
  Status reserve(int64_t in_features, int num_threads);
  // Bytes that reserve() allocates.
  static int64_t num_bytes(int64_t in_features, int num_threads);

  float* x() const { return static_cast<float*>(x_.data()); }  // [kMaxGroupedRows, in_features]
  float* slice(int thread_idx) const;                          // [kSliceFloats]
  float* sums(int thread_idx) const;  // [kMaxGroupedRows, kBlockPanels * 32]

 private:
  Buffer of_threads_;
  Buffer x_;  // packed activations, shared by all threads
};

// x: rows of in_features, out: rows of out_features, both dense; at most kMaxGroupedRows rows in
// total.
void linear_fma(std::span<const RowGroup> groups, const float* x, float* out, ThreadPool& pool,
                const FmaScratch& scratch);

}  // namespace quire::cpu
