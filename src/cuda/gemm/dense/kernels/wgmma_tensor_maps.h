// The tensor maps of the operands of the kernels in this folder.
#pragma once

#include <cuda.h>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda::wgmma {

// The 128-byte swizzle repeats after this many rows.
inline constexpr int kSwizzleRows = 8;

// Returns E4M3 values as pairs, because the elements of a tensor map have 16 bits.
TensorView as_pairs(TensorView view);

// w: [rows, K], or [experts, rows, K]. The axes are K, rows and, if w has them, experts. With
// is_gated, w is [gate; up], and the axis of rows is replaced by three axes: kSwizzleRows rows,
// gate and up, and groups of kSwizzleRows rows. So 8 rows of gate are followed by the corresponding
// 8 rows of up. A box has kBlockK elements of K and box_rows rows.
Result<CUtensorMap> weights_map(const TensorView& w, bool is_gated, int box_rows);

// x: [rows, K]. A box has kBlockK elements of K and box_rows rows.
Result<CUtensorMap> rows_map(const TensorView& x, int box_rows);

}  // namespace quire::cuda::wgmma
