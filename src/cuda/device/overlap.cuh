// Programmatic dependent launch: a kernel's thread blocks may become resident, and read memory that
// no kernel writes, while the previous kernel still runs. LaunchShape::overlap_start requests it;
// without it, and before Hopper, both functions do nothing.
#pragma once

#include <cuda_runtime.h>

namespace quire::cuda {

// Every thread block of a kernel that is launched this way calls this before it touches anything
// that another kernel writes or reads: the next kernel relies on it for all earlier work too.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// May be called before wait_for_previous_kernel(), because the next kernel waits too. Several
// kernels of a step can therefore be resident at once, and before its wait a kernel may read only
// memory that none of them writes: weights, and the output of step/metadata.cu, which does not let
// its successors start early.
__device__ __forceinline__ void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace quire::cuda
