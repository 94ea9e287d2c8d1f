#include "cuda/gemm/dense/grouped_gemm.h"

#include <bit>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/gemm/dense/kernels/wgmma_tensor_maps.h"

namespace quire::cuda {
namespace {

wgmma::GroupedOperand operand_of(const GroupedGemmCall& call) {
  if (call.w.dtype != DType::kF8E4M3) return wgmma::GroupedOperand::kSame;
  return call.scale_rows == 0 ? wgmma::GroupedOperand::kRowScales
                              : wgmma::GroupedOperand::kBlockScales;
}

// Large tiles are faster if their number is large: then an incomplete last wave costs little.
wgmma::GroupedTile tile_of(const GroupedGemmCall& call, wgmma::GroupedOperand operand,
                           int num_blocks) {
  constexpr int64_t kManyRounds = 8;
  const wgmma::GroupedTile largest = wgmma::largest_tile(operand, call.tile_rows);
  const int64_t num_tiles = ceil_div(call.x.shape[0], int64_t{largest.tokens}) *
                            ceil_div(call.w.shape[1], int64_t{largest.weights});
  if (num_tiles >= kManyRounds * num_blocks) return largest;
  return {wgmma::kGroupedWeights, call.tile_rows};
}

void set_scales(const GroupedGemmCall& call, wgmma::GroupedParams& p) {
  p.w_scales = call.w_scales.as<const float>();
  p.x_scales = call.x_scales.as<const float>();
  p.x_scale_rows = call.x_scale_rows;
  if (call.scale_rows == 0) return;
  p.scale_shift = std::countr_zero(static_cast<uint64_t>(call.scale_rows));
  p.scale_groups = static_cast<int>(ceil_div(call.w.shape[1], call.scale_rows));
  p.x_scales_width = static_cast<int>(call.x_scales.shape[1]);
}

}  // namespace

Status run_grouped_gemm(const LaunchContext& context, int num_blocks, const GroupedGemmCall& call) {
  static_assert(kScaleColumns == 2 * wgmma::kBlockK, "a stage has one scale");
  const TensorView w = wgmma::as_pairs(call.w);
  const wgmma::GroupedOperand operand = operand_of(call);
  const wgmma::GroupedTile tile = tile_of(call, operand, num_blocks);
  wgmma::GroupedParams p;
  p.num_stages = wgmma::kMaxStages;
  while (grouped_shared_bytes(tile, p.num_stages) > context.stream->limits().max_shared_bytes)
    --p.num_stages;
  QUIRE_ASSIGN_OR_RETURN(p.w, wgmma::weights_map(w, call.is_gated, tile.weights));
  QUIRE_ASSIGN_OR_RETURN(p.x, wgmma::rows_map(wgmma::as_pairs(call.x), tile.tokens));
  p.out = call.out.data;
  p.bias = call.bias.data;
  p.num_columns = call.out.shape[1];
  p.num_rows = static_cast<int>(call.x.shape[0]);
  p.out_is_f32 = call.out.dtype == DType::kF32;
  p.is_f16 = call.type == DType::kF16;
  p.is_gated = call.is_gated;
  p.activation = call.activation;
  if (call.sorted != nullptr) {
    p.tiles = call.sorted->tiles;
    p.num_tiles = call.sorted->num_tiles;
  }
  set_scales(call, p);
  p.num_weight_tiles = static_cast<int>(ceil_div(w.shape[1], int64_t{tile.weights}));
  p.num_k_blocks = static_cast<int>(ceil_div(w.shape[2], int64_t{wgmma::kBlockK}));
  const LaunchShape shape = {.grid = static_cast<unsigned>(num_blocks),
                             .block = wgmma::kThreads,
                             .shared_bytes = grouped_shared_bytes(tile, p.num_stages),
                             .overlap_start = context.overlap_start};
  QUIRE_LAUNCH(*context.stream, wgmma::grouped_kernel(p.is_f16, operand, tile), shape, p);
  return {};
}

}  // namespace quire::cuda
