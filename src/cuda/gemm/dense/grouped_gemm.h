// Products by grouped_kernel.cuh: with the experts of a layer, or with E4M3 weights that have a
// scale per block. Both can compute gated_mul() in the epilogue.
#pragma once

#include <cstdint>

#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/ops/op_kernels.h"

namespace quire::cuda {

// The pairs of a step (a token and one of its experts), in the order of the experts. All memory is
// on the device.
struct SortedPairs {
  int32_t* tokens = nullptr;           // [num_pairs], of each sorted row
  int32_t* rows = nullptr;             // [num_pairs], the sorted row of each pair
  wgmma::ExpertTile* tiles = nullptr;  // [max_expert_tiles()]
  int32_t* num_tiles = nullptr;        // one number
};

// An upper bound on the number of tiles for `num_pairs` rows.
constexpr int64_t max_expert_tiles(int64_t num_pairs, int num_experts, int tile_rows) {
  const int64_t num_used = num_pairs < num_experts ? num_pairs : num_experts;
  return num_used + (num_pairs - num_used) / tile_rows;
}

// out = x * w^T of each expert:
//
//   w and x       scales   out             bias
//   F16 or BF16   none     as x, or F32    as x
//   E4M3          F32      `type`, or F32  `type`
struct GroupedGemmCall {
  TensorView w;           // [num_experts, rows, columns], columns a multiple of 16 bytes
  TensorView x;           // [num_rows, columns], 16-byte aligned
  TensorView out;         // [num_rows, rows], or half as many columns with is_gated
  DType type;             // F16 or BF16: of bias, and of out unless that is F32
  TensorView bias = {};   // [rows], or [num_experts, rows]; data null: none
  bool is_gated = false;  // out = gated_mul(activation, the product); not F32
  Activation activation = Activation::kSilu;  // not kGelu
  int tile_rows = 0;                          // rows of x in a tile: one of wgmma::kGroupedTokens
  // The list of tiles must be complete before the previous kernel lets this one start. null: all
  // rows belong to expert 0.
  const SortedPairs* sorted = nullptr;
  // Per row [num_experts * rows]; per block [num_experts, ceil(rows / scale_rows),
  // num_scale_columns(columns)].
  TensorView w_scales = {};
  // Per row [num_rows], or as many as x_scale_rows refers to; per block
  // [num_scale_columns(columns), width] with width >= num_rows. Whole tiles are read, so memory for
  // wgmma::kMostGroupedTokens more numbers must follow the scales per block.
  TensorView x_scales = {};
  const int32_t* x_scale_rows = nullptr;  // null, or the index into x_scales per row of x
  // 0: one scale per row of w and per row of x. Otherwise one scale per block: this many rows of w,
  // or one row of x, times kScaleColumns columns.
  int64_t scale_rows = 0;
};

// Hopper only. num_blocks: thread blocks; an SM runs one of them. Enqueues; capturable.
Status run_grouped_gemm(const LaunchContext& context, int num_blocks, const GroupedGemmCall& call);

}  // namespace quire::cuda
