// The arguments of the kernels that multiply by unpacked matrices, and the two kernels that need no
// plan. All functions enqueue; the caller has checked the shapes.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/ops/op_kernels.h"

namespace quire::cuda {

// out[t, n] = sum_k x[t, k] * scale(n, k) * w[n, k] + bias[n].
//
// Operands are on the device. Either x, w and bias have one type, without scales; or w is E4M3 with
// scales, and x and bias have one other type. out has the type of x or F32.
struct GemmCall {
  TensorView x;     // [m, k]
  TensorView w;     // [n, k]
  TensorView bias;  // [n]; data null: none
  TensorView out;   // [m, n]
  // [m, n / 2]; data null: none. gated_out = silu(first half of out) * second half, and out is
  // scratch memory. The kernels of this header compute only `out`.
  TensorView gated_out = {};
  // F32 [n], or with scale_rows [ceil(n / scale_rows), num_scale_columns(k)]; data null: none.
  TensorView w_scales = {};
  // 0, or the number of rows of w per block that shares a scale: a power of two up to 128.
  int64_t scale_rows = 0;
  // GemmRunner computes x by this operation, in the form that the product's kernel needs; x is
  // scratch memory then. The kernels below require that x is already computed.
  RowOperation operation = {};
  // For measurements: the product that reads gated_out, if it may quantize its activations. In that
  // case, either this product's kernel or the next product's operation computes gated_out, and the
  // choice affects the time of both.
  std::shared_ptr<const GemmCall> next = nullptr;

  bool has_fp8_weights() const { return w.dtype == DType::kF8E4M3; }
};

inline constexpr int64_t kMaxSkinnyRows = 16;

// The skinny kernel computes few rows on tensor cores. Its variants arrange a thread block's warps
// differently; the fastest one for a shape is measured.
int num_skinny_variants();
const char* skinny_variant_name(int variant);
// Accepts x in F16 or BF16, 1 to kMaxSkinnyRows rows, k a multiple of 8 (16 with E4M3 weights), and
// 16-byte aligned addresses.
bool skinny_takes(const GemmCall& call);
void run_skinny_gemm(const LaunchContext& context, const GemmCall& call, int variant);

// Computes products of any size, alignment, type and number of rows. It is the fastest kernel for
// one row, and slow for many.
void run_generic_gemm(const LaunchContext& context, const GemmCall& call);

// One product per head: out[t, h, n] = sum_k x[t, h, k] * w[h, n, k]. All operands are on the
// device and have one type. Elements beyond k of the heads of x are not read, and elements beyond n
// of the heads of out are not written.
struct PerHeadGemmCall {
  TensorView x;    // [m, heads, at least k]
  TensorView w;    // [heads, n, k]
  TensorView out;  // [m, heads, at least n]
};

// Accepts x in F16 or BF16, 1 to kMaxSkinnyRows rows, widths of x and k that are multiples of 8,
// and 16-byte aligned addresses.
bool skinny_takes(const PerHeadGemmCall& call);
void run_skinny_gemm(const LaunchContext& context, const PerHeadGemmCall& call);
// Computes products of any size, alignment, type and number of rows, slowly.
void run_generic_gemm(const LaunchContext& context, const PerHeadGemmCall& call);

}  // namespace quire::cuda
