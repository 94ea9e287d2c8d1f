// out[t, n] = sum_k x[t, k] * w[n, k] + bias[n] for few rows t, where the time is that of reading
// w.
#pragma once

#include <cstdint>

#include "cuda/ops/row_kernels.h"

namespace quire::cuda {

// Operands on the device; x, w and bias have one type, out has that type or F32.
struct GemmCall {
  TensorView x;     // [m, k]
  TensorView w;     // [n, k]
  TensorView bias;  // [n]; data null: none
  TensorView out;   // [m, n]
  // [m, n / 2]; data null: none. gated_out = silu(first half of out) * second half, and out is
  // scratch memory. The kernels of this file compute out alone.
  TensorView gated_out = {};
};

inline constexpr int64_t kMaxSkinnyRows = 16;

// The tensor-core kernel has variants that arrange a thread block's warps differently. The fastest
// one for a shape is measured.
int num_skinny_variants();
const char* skinny_variant_name(int variant);
// Accepts F16 or BF16, 1 to kMaxSkinnyRows rows, k a multiple of 8, and 16-byte aligned addresses.
bool skinny_takes(const GemmCall& call);
void run_skinny_gemm(const LaunchContext& context, const GemmCall& call, int variant);

// Computes products of any size, alignment, type and number of rows. It is the fastest at one row,
// and slow at many.
void run_any_gemm(const LaunchContext& context, const GemmCall& call);

}  // namespace quire::cuda
