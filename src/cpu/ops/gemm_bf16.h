// Computes out = x · Wᵀ + bias with AVX-512's dot products of BF16 pairs (vdpbf16ps), for BF16
// weights in PanelLayout::kPairs.
//
// Numerics. An activation x is rounded to one BF16, or split into two, x ≈ x0 + x1, which preserves
// 16 to 17 of its 24 bits. For each pair of k, in ascending order, the products with x0 are added
// to the F32 sums, then the products with x1. The order is the same for any number of rows. Between
// blocks of k, the sums are stored as F32, which is exact. BF16 weights and parts of x below 2^-126
// count as zero.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/row_group.h"

namespace quire::cpu {

// Whether the processor supports the kernel's instructions and may_use() allows them.
bool avx512_bf16_usable();

// Scratch memory for the activations as BF16, which all threads share, and for sums per thread. It
// is allocated when a Linear is made, so that linear() allocates nothing.
class Bf16Scratch {
 public:
  // For matrices of up to padded_k columns.
  Status reserve(int64_t padded_k, int num_threads);
  // Bytes that reserve() allocates; 0 in a build without AVX-512.
  static int64_t num_bytes(int64_t padded_k, int num_threads);
  uint16_t* x() const { return static_cast<uint16_t*>(x_.data()); }
  float* sums(int thread_idx) const;

 private:
  Buffer x_;
  Buffer sums_;
};

// x: rows of in_features, out: rows of out_features, both dense; at most kMaxGroupedRows rows in
// total. num_terms: BF16 per activation, 1 or 2.
void linear_bf16(std::span<const RowGroup> groups, const float* x, int num_terms, float* out,
                 ThreadPool& pool, const Bf16Scratch& scratch);

}  // namespace quire::cpu
