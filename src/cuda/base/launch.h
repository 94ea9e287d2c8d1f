// Launches every kernel of this project. Grid, thread block and shared memory are checked against
// the device's limits before the launch, and the launch's own error after it; the stream keeps both
// with the caller's source location. `<<<` appears nowhere.
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <type_traits>

#include "cuda/base/stream.h"

namespace quire::cuda {

struct LaunchShape {
  dim3 grid = 1;
  dim3 block = 1;
  size_t shared_bytes = 0;     // dynamic
  bool overlap_start = false;  // programmatic dependent launch, if the device has it: the kernel
                               // itself waits for its predecessor (device/hopper.cuh)
  bool cooperative = false;    // all thread blocks are resident: they may wait for each other
  unsigned cluster = 1;        // thread blocks per cluster, a divisor of grid.x (Hopper)
};

// Checks the launch against the limits, and raises the kernel's limit of dynamic shared memory if
// needed.
Status prepare_launch(const void* kernel, const LaunchShape& shape, const LaunchLimits& limits,
                      std::source_location where);

template <typename... Params, typename... Args>
void launch(CudaStream& stream, void (*kernel)(Params...), const LaunchShape& shape,
            std::source_location where, Args&&... args) {
  // An empty batch gives an empty grid, which CUDA does not accept.
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  Status status =
      prepare_launch(reinterpret_cast<const void*>(kernel), shape, stream.limits(), where);
  if (!status.ok()) return stream.record_error(std::move(status));
  cudaLaunchAttribute attributes[3] = {};
  unsigned num_attributes = 0;
  if (shape.cooperative) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  if (shape.cluster > 1) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {shape.cluster, 1, 1};
  }
  if (shape.overlap_start && stream.limits().overlaps_kernels) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.get();
  config.attrs = attributes;
  config.numAttrs = num_attributes;
  stream.record_error(
      cudaLaunchKernelEx(&config, kernel, static_cast<Params>(std::forward<Args>(args))...),
      "a kernel's launch", where);
}

}  // namespace quire::cuda

// `QUIRE_LAUNCH(stream, kernel<128>, {.grid = n, .block = 256}, a, b)`; parentheses around a kernel
// with commas in its template arguments.
#define QUIRE_LAUNCH(stream, kernel, shape, ...)     \
  ::quire::cuda::launch((stream), (kernel), (shape), \
                        std::source_location::current() __VA_OPT__(, ) __VA_ARGS__)
