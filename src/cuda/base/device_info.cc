#include "cuda/base/device_info.h"

#include <fmt/format.h>

#include "cuda/base/error.h"

namespace quire::cuda {

Result<DeviceInfo> open_device(int index) {
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    return unavailable(fmt::format(
        "[cuda] no usable GPU: {}; use --device cpu",
        error != cudaSuccess ? cudaGetErrorString(error) : "the driver reports no device"));
  }
  if (index < 0 || index >= num_devices) {
    return invalid_argument(fmt::format(
        "[cuda] there is no GPU of that number; got {}, expected 0 to {}", index, num_devices - 1));
  }
  QUIRE_CUDA_RETURN_IF_ERROR(cudaSetDevice(index));
  cudaDeviceProp properties = {};
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.device = {.kind = DeviceKind::kCuda,
                 .index = index,
                 .compute_capability = properties.major * 10 + properties.minor,
                 .name = properties.name};
  info.num_multiprocessors = properties.multiProcessorCount;
  info.total_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  return info;
}

Result<int64_t> free_device_bytes() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
  return static_cast<int64_t>(free_bytes);
}

}  // namespace quire::cuda
