#pragma once

#include <cuda_runtime_api.h>

namespace quire::cuda {

// Whether this build has kernels for the current device's generation: nothing is compiled at run
// time, so that without them the first launch would fail.
cudaError_t find_kernel_image();

}  // namespace quire::cuda
