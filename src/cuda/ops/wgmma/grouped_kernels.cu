#include "cuda/ops/wgmma/grouped_kernel.cuh"

namespace quire::cuda::wgmma {
namespace {

template <typename T, typename Operand>
GroupedKernel with_tokens(int tokens) {
  if (tokens == kGroupedTokens[0]) return grouped_gemm_kernel<T, Operand, kGroupedTokens[0]>;
  if (tokens == kGroupedTokens[1]) return grouped_gemm_kernel<T, Operand, kGroupedTokens[1]>;
  return grouped_gemm_kernel<T, Operand, kGroupedTokens[2]>;
}

template <typename T>
GroupedKernel with_operands(bool is_fp8, int tokens) {
  return is_fp8 ? with_tokens<T, __nv_fp8_e4m3>(tokens) : with_tokens<T, T>(tokens);
}

}  // namespace

GroupedKernel grouped_kernel(bool is_f16, bool is_fp8, int tokens) {
  return is_f16 ? with_operands<__half>(is_fp8, tokens)
                : with_operands<__nv_bfloat16>(is_fp8, tokens);
}

}  // namespace quire::cuda::wgmma
