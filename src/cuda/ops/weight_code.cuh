// The types of weights that kernels are compiled for, and their scales.
#pragma once

#include <cuda_fp8.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "cuda/ops/op_kernels.h"

namespace quire::cuda {

// Whether kernels with weights of this type are compiled for the current architecture. E4M3 weights
// are refused before Hopper, where their conversion in software would take minutes to compile.
template <typename W>
__device__ constexpr bool has_code() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return !std::is_same_v<W, __nv_fp8_e4m3>;
#else
  return true;
#endif
}

// The scaling of a kernel's weights.
enum class Scaling { kNone, kRows, kBlocks };
template <Scaling kScaling>
using ScalingConstant = std::integral_constant<Scaling, kScaling>;

// The scales of E4M3 weights with one scale per block of kScaleColumns columns and 1 << row_shift
// rows.
struct BlockScales {
  const float* values;
  int row_shift;
  int64_t num_columns;  // of the matrix of scales

  __device__ __forceinline__ const float* of_row(int64_t row) const {
    return values + (row >> row_shift) * num_columns;
  }
  // The scales of matrix `idx` in a stack of matrices of `num_rows` rows.
  __device__ __forceinline__ BlockScales of_matrix(int64_t idx, int64_t num_rows) const {
    const int64_t num_groups = (num_rows + (int64_t{1} << row_shift) - 1) >> row_shift;
    return {values + idx * num_groups * num_columns, row_shift, num_columns};
  }
};

// scale_rows: 0 if the scales are not per block.
inline BlockScales block_scales(const float* values, int64_t scale_rows, int64_t k) {
  const auto rows = static_cast<uint64_t>(scale_rows);
  return {values, scale_rows > 0 ? std::countr_zero(rows) : 0, num_scale_columns(k)};
}

}  // namespace quire::cuda
