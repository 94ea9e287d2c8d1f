// Computes out = x · Wᵀ + bias with Intel AMX tiles, for BF16 and F16 weights in
// PanelLayout::kPairs.
//
// Numerics. AMX multiplies BF16 and sums F32. An activation x is split into two BF16, x ≈ x0 + x1,
// which preserves 16 to 17 of its 24 bits. A BF16 weight is one BF16; an F16 weight is exactly the
// sum of two, w = w0 + w1. For each 32 of k, in ascending order, x0·w0 is added to the sums, then
// x1·w0, then (F16) x0·w1. x1·w1 and the rest of x are below 2^-16 of a product and are omitted.
// The order is the same for any number of rows. Between blocks of k, the sums are stored as F32,
// which is exact. Measured against exact sums of normal numbers, relative to the root mean square
// of the outputs, the error is 2.5e-6 with BF16 weights and 5.5e-6 with F16, at K of 2048 and 8192
// (F32 sums: 0.8e-6 and 1.6e-6). BF16 weights and parts of x below 2^-126 count as zero.
//
// With num_terms = 1, BF16 weights multiply only x0, which is x rounded to BF16: the error is
// 1.6e-3. F16 weights always multiply both terms.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/row_group.h"

namespace quire::cpu {

namespace amx {
struct Kernel;
}

// Whether the processor has the kernel's instructions, may_use() allows them, and the operating
// system lets this process use them.
bool amx_usable();
// The tile products of this processor; null if amx_usable() is false.
const amx::Kernel* amx_kernel();
// Whether the processor has the kernel's instructions except for the tile instructions, and
// may_use() allows them.
bool amx_avx512_usable();
// Whether the processor, may_use() and the operating system allow products of bytes on tiles
// (quantized/). The kernels also need AVX-512, which this function does not check.
bool amx_int8_usable();

// Scratch memory for the activations as BF16 tiles, which all threads share, and for one block of
// split F16 weights per thread. It is allocated when a Linear is made, so that linear() allocates
// nothing.
class AmxScratch {
 public:
  // For matrices of up to padded_k columns.
  Status reserve(int64_t padded_k, int num_threads);
  // Bytes that reserve() allocates; 0 in a build without AMX.
  static int64_t num_bytes(int64_t padded_k, int num_threads);
  uint16_t* x_tiles() const { return static_cast<uint16_t*>(x_tiles_.data()); }
  uint16_t* weights(int thread_idx) const;

 private:
  Buffer x_tiles_;
  Buffer weights_;
};

// Converts F16 in place to F16 pairs (amx/kernel.h). Returns false if a value does not fit.
// `values` must be 64-byte aligned, and `count` a multiple of 32.
bool amx_encode_f16(uint16_t* values, int64_t count);

// x: rows of in_features, out: rows of out_features, both dense; at most kMaxGroupedRows rows in
// total. num_terms: BF16 per activation of BF16 weights, 1 or 2.
void linear_amx(std::span<const RowGroup> groups, const amx::Kernel& kernel, const float* x,
                int num_terms, float* out, ThreadPool& pool, const AmxScratch& scratch);

}  // namespace quire::cpu
