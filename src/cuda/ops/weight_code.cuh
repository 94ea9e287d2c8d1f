// The types of weights that kernels are compiled for.
#pragma once

#include <cuda_fp8.h>

#include <type_traits>

namespace quire::cuda {

// Whether kernels with weights of this type have code. E4M3 weights are refused before Hopper,
// where their conversion in software would take minutes to compile.
template <typename W>
__device__ constexpr bool has_code() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return !std::is_same_v<W, __nv_fp8_e4m3>;
#else
  return true;
#endif
}

}  // namespace quire::cuda
