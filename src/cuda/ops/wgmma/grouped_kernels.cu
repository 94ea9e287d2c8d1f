#include "cuda/ops/wgmma/grouped_kernel.cuh"

namespace quire::cuda::wgmma {
namespace {

template <typename T, typename Operand>
GroupedKernel with_tokens(bool has_few_tokens) {
  return has_few_tokens ? grouped_gemm_kernel<T, Operand, kGroupedFewTokens>
                        : grouped_gemm_kernel<T, Operand, kGroupedTokens>;
}

template <typename T>
GroupedKernel with_operands(bool is_fp8, bool has_few_tokens) {
  return is_fp8 ? with_tokens<T, __nv_fp8_e4m3>(has_few_tokens) : with_tokens<T, T>(has_few_tokens);
}

}  // namespace

GroupedKernel grouped_kernel(bool is_f16, bool is_fp8, bool has_few_tokens) {
  return is_f16 ? with_operands<__half>(is_fp8, has_few_tokens)
                : with_operands<__nv_bfloat16>(is_fp8, has_few_tokens);
}

}  // namespace quire::cuda::wgmma
