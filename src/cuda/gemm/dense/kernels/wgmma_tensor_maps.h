// The tensor maps of the operands of this folder's kernels.
#pragma once

#include <cuda.h>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda::wgmma {

// The 128-byte swizzle repeats after this many rows.
inline constexpr int kSwizzleRows = 8;

// w: [rows, K], or [experts, rows, K]. The axes are K, rows and, if w has them, experts. With
// is_gated, w is [gate; up], and the axis of rows becomes three: kSwizzleRows rows, gate and up,
// and groups of such rows. So 8 rows of gate and the same 8 rows of up follow one another. A box
// has kBlockK elements of K and box_rows rows.
Result<CUtensorMap> weights_map(const TensorView& w, bool is_gated, int box_rows);

// x: [rows, K]. A box has kBlockK elements of K and box_rows rows.
Result<CUtensorMap> rows_map(const TensorView& x, int box_rows);

}  // namespace quire::cuda::wgmma
