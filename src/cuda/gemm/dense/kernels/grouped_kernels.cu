#include "cuda/gemm/dense/kernels/grouped_kernel.cuh"

namespace quire::cuda::wgmma {
namespace {

template <typename T, typename Operand, GroupedOperand kOperand>
GroupedKernel with_tile(const GroupedTile& tile) {
  constexpr bool kBlockScales = kOperand == GroupedOperand::kBlockScales;
  constexpr int kMost = largest_tile(kOperand, kMostGroupedTokens).weights;
  if (tile.tokens == kGroupedTokens[0]) {
    return grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedWeights, kGroupedTokens[0]>;
  }
  if (tile.tokens == kGroupedTokens[1]) {
    return grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedWeights, kGroupedTokens[1]>;
  }
  if (tile.weights == kMost) {
    return grouped_gemm_kernel<T, Operand, kBlockScales, kMost, kMostGroupedTokens>;
  }
  return grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedWeights, kMostGroupedTokens>;
}

}  // namespace

GroupedKernel grouped_kernel(bool is_f16, GroupedOperand operand, const GroupedTile& tile) {
  switch (operand) {
    case GroupedOperand::kSame:
      return is_f16 ? with_tile<__half, __half, GroupedOperand::kSame>(tile)
                    : with_tile<__nv_bfloat16, __nv_bfloat16, GroupedOperand::kSame>(tile);
    case GroupedOperand::kRowScales:
      return with_tile<Any16Bits, __nv_fp8_e4m3, GroupedOperand::kRowScales>(tile);
    case GroupedOperand::kBlockScales:
      return with_tile<Any16Bits, __nv_fp8_e4m3, GroupedOperand::kBlockScales>(tile);
  }
  return nullptr;
}

}  // namespace quire::cuda::wgmma
