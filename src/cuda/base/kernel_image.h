#pragma once

#include <cuda_runtime_api.h>

namespace quire::cuda {

// Succeeds if this build has kernels for the current device's compute capability. Nothing is
// compiled at run time, so without them the first launch would fail.
cudaError_t find_kernel_image();

}  // namespace quire::cuda
