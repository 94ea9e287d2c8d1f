// The kernels for rows of activations that CudaOps launches, and the dispatch that all kernels
// share. All functions enqueue; the caller has checked the shapes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <variant>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/base/stream.h"
#include "ops/weight_store.h"

namespace quire::cuda {

// The stream and the options with which an Ops object launches its kernels.
struct LaunchContext {
  CudaStream* stream = nullptr;
  bool overlap_start = false;  // LaunchShape::overlap_start

  // Returns the launch shape for `grid` x `grid_y` thread blocks of `block` threads.
  LaunchShape shape(int64_t grid, int64_t block, int64_t grid_y = 1) const {
    return {.grid = dim3(static_cast<unsigned>(grid), static_cast<unsigned>(grid_y)),
            .block = dim3(static_cast<unsigned>(block)),
            .overlap_start = overlap_start};
  }
};

// out[i, :] = x[rows[i], :]; x and out have the same type.
void run_gather_rows(const LaunchContext& context, const TensorView& x, const int32_t* rows,
                     const TensorView& out);
// out[t, first_column + i] = x[t, i]; x and out have the same type.
void run_write_columns(const LaunchContext& context, const TensorView& x, const TensorView& out,
                       int64_t first_column);
// out[i, :] = scale * x[rows[i], :]. Either x has the type of out and no scales (data null), or x
// is E4M3 and is multiplied by scales in the layout of GemmCall::w_scales.
void run_gather_scaled_rows(const LaunchContext& context, const TensorView& x,
                            const TensorView& x_scales, int64_t scale_rows, const int32_t* rows,
                            float scale, const TensorView& out);
// out[i, j] = x[i, columns[j]]; x and out are F32.
void run_gather_columns(const LaunchContext& context, const TensorView& x, const int32_t* columns,
                        const TensorView& out);
// For a rank that has rows `part` of an embedding table: rows[t] = ids[t] - part.first, or 0 for
// tokens in other parts.
void run_part_rows(const LaunchContext& context, const int32_t* ids, int64_t count,
                   const Slice& part, int32_t* rows);
// out[t, :] = 0 for tokens in other parts.
void run_clear_other_rows(const LaunchContext& context, const int32_t* ids, const Slice& part,
                          const TensorView& out);
// out[t, :] = row t of each part, concatenated; F32. Part i begins at element i * part_size. Its
// rows have part_width columns; the last parts may have fewer or none.
void run_join_columns(const LaunchContext& context, const float* parts, int64_t part_size,
                      int64_t part_width, const TensorView& out);
// Ops::residual_norm on one rank.
void run_rms_norm(const LaunchContext& context, const ResidualNorm& norm, const TensorView& out);
// Ops::wide_norm. Several ranks exchange norm.sums between the sums and the scaling.
enum class WideNormPart { kAll, kSums, kScaling };
void run_wide_norm(const LaunchContext& context, const WideNorm& norm, WideNormPart part,
                   int num_ranks);
void run_gated_mul(const LaunchContext& context, Activation activation, const TensorView& gate_up,
                   const TensorView& out);
// Ops::gated_mul_columns; the rows of `gate` may be wider than those of `out`.
void run_gated_mul_columns(const LaunchContext& context, Activation activation,
                           const TensorView& gate, const TensorView& up, int64_t first_column,
                           const TensorView& out);
// The operation gated_mul(activation, gate_up).
struct GatedMul {
  Activation activation = Activation::kSilu;
  TensorView gate_up;  // twice as wide
};
// An operation that computes rows of activations. A ResidualNorm must have a weight. With
// monostate, the rows are given.
using RowOperation = std::variant<std::monostate, ResidualNorm, GatedMul>;
// x = result of the operation. A norm without an addition may be in place.
void run_row_operation(const LaunchContext& context, const RowOperation& operation,
                       const TensorView& x);
// Ops::gate.
void run_gate(const LaunchContext& context, const Gating& gating);
// x = cap * tanh(x / cap); x is F32.
void run_soft_cap(const LaunchContext& context, float cap, const TensorView& x);
void run_rope_angles(const LaunchContext& context, const float* inv_freq, float attention_factor,
                     const int32_t* positions, const TensorView& cos_sin);
void run_position_scales(const LaunchContext& context, const PositionScale& scale,
                         const int32_t* positions, const TensorView& out);
// out[t, n] += bias[n]. The bias has any float type, and out has the same type or F32.
void run_add_bias(const LaunchContext& context, const TensorView& bias, const TensorView& out);
void run_rope_and_cache(const LaunchContext& context, const RopeAndCache& args);
void run_latent_rope_and_cache(const LaunchContext& context, const LatentRopeAndCache& args);
// Quantizes rows: out[t, :] = x[t, :] / scales[t] in E4M3, and scales[t] (F32) is e4m3_scale() of
// the row's largest magnitude. NaN stays NaN. In a row with an infinity, the infinity becomes NaN,
// finite values become 0, and the scale is infinite, so that any product with the row is NaN. With
// an operation, the rows of x are computed on the fly, with the same bits; x itself is neither read
// nor written. GatedMul requires Hopper and at most 65535 rows.
void run_quantize_rows(const LaunchContext& context, const TensorView& x, const TensorView& out,
                       const TensorView& scales, const RowOperation& operation = {});
// Like run_quantize_rows(), with one scale per row and kScaleColumns columns: scales[k /
// kScaleColumns, t]. A row of `scales` may have more elements than x has rows. x is F16 or BF16
// with rows of whole 16-byte vectors.
void run_quantize_blocks(const LaunchContext& context, const TensorView& x, const TensorView& out,
                         const TensorView& scales, const RowOperation& operation = {});
// ExpertOps::route.
void run_route(const LaunchContext& context, const ExpertRouting& routing, const TensorView& logits,
               const float* bias, const TensorView& ids, const TensorView& weights);
// Launches an empty kernel in place of a small operation between two products, for measurements.
void run_empty_kernel(const LaunchContext& context);
// Launches thread blocks that spin for this many clock cycles in place of attention, for
// measurements.
void run_spin_kernel(const LaunchContext& context, int64_t num_blocks, int64_t cycles);

// Kernels of weight loading.
//
// out[i] = x[i], converted; x may be pinned host memory.
void run_convert(const LaunchContext& context, const TensorView& x, const TensorView& out);
// Quantizes these columns of rows of weights with the scale of the whole row, to the same bits as
// quantize_rows() on the host. Unlike run_quantize_rows(), it divides by the scale, because a
// product with the inverse scale could round to a different value. x must be finite.
void run_quantize_weights(const LaunchContext& context, const TensorView& x, const Slice& columns,
                          const TensorView& out, const TensorView& scales);
// Fills out[i, j] as RepeatedRows defines it; `pool` is a device copy of the pool's values.
void run_fill_repeated(const LaunchContext& context, const RepeatedRows& rows, const void* pool,
                       const TensorView& out);

// The number of columns of E4M3 weights that share a scale, if the weights have scales per block.
// Quantized activations then have one scale for the same columns, so that a sum over them has one
// factor.
inline constexpr int64_t kScaleColumns = 128;
// The number of blocks of scales along K.
constexpr int64_t num_scale_columns(int64_t k) {
  return ceil_div(k, kScaleColumns);
}

// Dispatch from run-time values to template parameters.
//
// Calls body(std::type_identity<T>()) for F32, F16 or BF16.
template <typename Body>
void with_float_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(std::type_identity<float>());
    case DType::kF16:
      return body(std::type_identity<__half>());
    case DType::kBF16:
      return body(std::type_identity<__nv_bfloat16>());
    default:
      QUIRE_CHECK(false, "[ops] the type is not f32, f16 or bf16");
  }
}

// Calls body(std::type_identity<T>()) for F16 or BF16.
template <typename Body>
void with_half_type(DType dtype, const Body& body) {
  if (dtype == DType::kF16) return body(std::type_identity<__half>());
  QUIRE_CHECK(dtype == DType::kBF16, "[ops] the type is neither f16 nor bf16");
  body(std::type_identity<__nv_bfloat16>());
}

// Calls body(std::bool_constant<…>()).
template <typename Body>
void with_bool(bool value, const Body& body) {
  return value ? body(std::true_type()) : body(std::false_type());
}

inline bool is_aligned(std::initializer_list<const void*> addresses, size_t alignment) {
  for (const void* address : addresses) {
    if (reinterpret_cast<uintptr_t>(address) % alignment != 0) return false;
  }
  return true;
}

}  // namespace quire::cuda
