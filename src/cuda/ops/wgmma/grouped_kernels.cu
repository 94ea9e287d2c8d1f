#include "cuda/ops/wgmma/grouped_kernel.cuh"

namespace quire::cuda::wgmma {
namespace {

template <typename T, typename Operand, bool kBlockScales>
GroupedKernel with_tokens(bool has_few_tokens) {
  return has_few_tokens ? grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedFewTokens>
                        : grouped_gemm_kernel<T, Operand, kBlockScales, kGroupedTokens>;
}

template <typename T>
GroupedKernel with_operands(GroupedOperand operand, bool has_few_tokens) {
  switch (operand) {
    case GroupedOperand::kSame:
      return with_tokens<T, T, false>(has_few_tokens);
    case GroupedOperand::kRowScales:
      return with_tokens<T, __nv_fp8_e4m3, false>(has_few_tokens);
    case GroupedOperand::kBlockScales:
      return with_tokens<T, __nv_fp8_e4m3, true>(has_few_tokens);
  }
  return nullptr;
}

}  // namespace

GroupedKernel grouped_kernel(bool is_f16, GroupedOperand operand, bool has_few_tokens) {
  return is_f16 ? with_operands<__half>(operand, has_few_tokens)
                : with_operands<__nv_bfloat16>(operand, has_few_tokens);
}

}  // namespace quire::cuda::wgmma
