// Launches every kernel of this project. Grid, thread block and shared memory are checked against
// the device's limits before the launch, and CUDA's launch error after it. The stream keeps either
// error with the caller's source location. No other code uses `<<<`.
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <utility>

#include "cuda/base/stream.h"

namespace quire::cuda {

struct LaunchShape {
  dim3 grid = 1;
  dim3 block = 1;
  size_t shared_bytes = 0;     // dynamic
  bool overlap_start = false;  // programmatic dependent launch, if the device has it: the kernel
                               // itself waits for its predecessor (device/hopper.cuh)
  bool cooperative = false;    // all thread blocks are resident, so they may wait for each other
  unsigned cluster = 1;        // thread blocks per cluster, a divisor of grid.x (Hopper)
};

// Checks the launch against the limits, raises the kernel's limit of dynamic shared memory if
// needed, and launches. `args` points to the arguments. QUIRE_LAUNCH checks their types.
void launch_kernel(CudaStream& stream, const void* kernel, const LaunchShape& shape,
                   std::source_location where, void** args);

template <typename... Params, typename... Args>
void launch(CudaStream& stream, void (*kernel)(Params...), const LaunchShape& shape,
            std::source_location where, Args&&... args) {
  const auto launch_with = [&](Params... values) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
    launch_kernel(stream, reinterpret_cast<const void*>(kernel), shape, where, pointers);
  };
  launch_with(static_cast<Params>(std::forward<Args>(args))...);
}

}  // namespace quire::cuda

// `QUIRE_LAUNCH(stream, kernel<128>, {.grid = n, .block = 256}, a, b)`. A kernel with several
// template arguments needs parentheses.
#define QUIRE_LAUNCH(stream, kernel, shape, ...)     \
  ::quire::cuda::launch((stream), (kernel), (shape), \
                        std::source_location::current() __VA_OPT__(, ) __VA_ARGS__)
