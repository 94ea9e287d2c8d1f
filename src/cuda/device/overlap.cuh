// Programmatic dependent launch: a kernel's blocks may take their places, and read what no kernel
// writes, while the kernel before still runs. Launched with LaunchShape::overlap_start; without it,
// and before Hopper, both calls do nothing.
#pragma once

#include <cuda_runtime.h>

namespace quire::cuda {

// Every kernel that is launched so calls this before it touches anything another kernel wrote or
// reads, in every block: the kernel after it relies on that for the work before it too.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// May come before the wait: the next kernel waits in its turn. So several kernels of a step can be
// there at once, and ahead of its wait a kernel may read only what none of them writes: weights, and
// what step/metadata.cu made, which keeps its successors back.
__device__ __forceinline__ void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace quire::cuda
