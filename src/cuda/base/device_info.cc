#include "cuda/base/device_info.h"

#include <fmt/format.h>

#include <string>

#include "cuda/base/stream.h"

namespace quire::cuda {
namespace {

Status check_kernel_image(int capability) {
  const cudaError_t error = find_kernel_image();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction) {
    return to_status(error, "finding the kernels of this build");
  }
  cudaGetLastError();  // otherwise the next call would return this error
  return unavailable(
      fmt::format("[cuda] this build has no kernels for the GPU's compute capability {}.{}; build "
                  "with -DQUIRE_CUDA_ARCHITECTURES={}{}-real",
                  capability / 10, capability % 10, capability, capability == 90 ? "a" : ""));
}

// "12.4" for 12040, as CUDA encodes versions.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Explains why cudaGetDeviceCount() found no device, and how to fix it.
std::string absence_reason(cudaError_t error) {
  if (error == cudaSuccess || error == cudaErrorNoDevice) {
    return "the driver reports no NVIDIA GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES";
  }
  if (error != cudaErrorInsufficientDriver) return cudaGetErrorString(error);
  int driver = 0;  // stays 0 without a driver
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) {
    return "no NVIDIA driver is installed (libcuda.so.1 is missing); install it, or start the "
           "container with the GPU";
  }
  return fmt::format("the NVIDIA driver supports CUDA {}, expected at least {}; update the driver",
                     version_text(driver), version_text(runtime));
}

}  // namespace

Result<DeviceInfo> open_device(int index) {
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    return unavailable(fmt::format("[cuda] no usable GPU: {}", absence_reason(error)));
  }
  if (index < 0 || index >= num_devices) {
    return invalid_argument(fmt::format("[cuda] no GPU has this index; got {}, expected 0 to {}",
                                        index, num_devices - 1));
  }
  QUIRE_RETURN_IF_ERROR(use_device(index));
  cudaDeviceProp properties = {};
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.device = {.kind = DeviceKind::kCuda,
                 .index = index,
                 .compute_capability = properties.major * 10 + properties.minor,
                 .name = properties.name};
  QUIRE_RETURN_IF_ERROR(check_kernel_image(info.device.compute_capability));
  info.num_sms = properties.multiProcessorCount;
  info.total_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  return info;
}

Status use_device(int index) {
  return to_status(cudaSetDevice(index), "cudaSetDevice");
}

Result<int64_t> free_device_bytes(int index) {
  int current = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDevice(&current));
  QUIRE_RETURN_IF_ERROR(use_device(index));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  const cudaError_t error_of_query = cudaMemGetInfo(&free_bytes, &total_bytes);
  QUIRE_RETURN_IF_ERROR(use_device(current));
  QUIRE_RETURN_IF_ERROR(to_status(error_of_query, "cudaMemGetInfo"));
  return static_cast<int64_t>(free_bytes);
}

}  // namespace quire::cuda
