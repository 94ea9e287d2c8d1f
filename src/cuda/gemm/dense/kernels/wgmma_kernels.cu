#include "cuda/gemm/dense/kernels/wgmma_kernel.cuh"

namespace quire::cuda::wgmma {

#define QUIRE_WGMMA_KERNEL(weights, tokens, weights_are_a) \
  wgmma_gemm_kernel<__nv_bfloat16, weights, tokens, weights_are_a>,
const Kernel kBf16Kernels[] = {QUIRE_WGMMA_TILES(QUIRE_WGMMA_KERNEL)};
#undef QUIRE_WGMMA_KERNEL

#define QUIRE_WGMMA_KERNEL(weights, tokens, weights_are_a) \
  wgmma_gemm_kernel<__half, weights, tokens, weights_are_a>,
const Kernel kF16Kernels[] = {QUIRE_WGMMA_TILES(QUIRE_WGMMA_KERNEL)};
#undef QUIRE_WGMMA_KERNEL

#define QUIRE_WGMMA_KERNEL(tokens) wgmma_gemm_kernel<__nv_fp8_e4m3, kFp8Weights, tokens, true>,
const Kernel kFp8Kernels[] = {QUIRE_WGMMA_FP8_TILES(QUIRE_WGMMA_KERNEL)};

}  // namespace quire::cuda::wgmma
