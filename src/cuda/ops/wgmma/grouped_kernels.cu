#include "cuda/ops/wgmma/grouped_kernel.cuh"

namespace quire::cuda::wgmma {

GroupedKernel grouped_kernel(bool is_f16, bool has_few_tokens) {
  if (is_f16) {
    return has_few_tokens ? grouped_gemm_kernel<__half, kGroupedFewTokens>
                          : grouped_gemm_kernel<__half, kGroupedTokens>;
  }
  return has_few_tokens ? grouped_gemm_kernel<__nv_bfloat16, kGroupedFewTokens>
                        : grouped_gemm_kernel<__nv_bfloat16, kGroupedTokens>;
}

}  // namespace quire::cuda::wgmma
