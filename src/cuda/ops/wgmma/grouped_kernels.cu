#include "cuda/ops/wgmma/grouped_kernel.cuh"

namespace quire::cuda::wgmma {
namespace {

template <typename T, typename Operand, bool kBlockScales>
GroupedKernel with_tokens(int tokens) {
  if (tokens == kGroupedTokens[0]) {
    return grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedTokens[0]>;
  }
  if (tokens == kGroupedTokens[1]) {
    return grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedTokens[1]>;
  }
  return grouped_gemm_kernel<T, Operand, kBlockScales, kMostGroupedTokens>;
}

template <typename T>
GroupedKernel with_operands(GroupedOperand operand, int tokens) {
  switch (operand) {
    case GroupedOperand::kSame:
      return with_tokens<T, T, false>(tokens);
    case GroupedOperand::kRowScales:
      return with_tokens<T, __nv_fp8_e4m3, false>(tokens);
    case GroupedOperand::kBlockScales:
      return with_tokens<T, __nv_fp8_e4m3, true>(tokens);
  }
  return nullptr;
}

}  // namespace

GroupedKernel grouped_kernel(bool is_f16, GroupedOperand operand, int tokens) {
  return is_f16 ? with_operands<__half>(operand, tokens)
                : with_operands<__nv_bfloat16>(operand, tokens);
}

}  // namespace quire::cuda::wgmma
