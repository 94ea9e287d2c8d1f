// Replaces src/cuda in a build without CUDA: everything that needs the device returns an error.
#include "platform/platform.h"
#include "platform/tune.h"

namespace quire {

bool is_built_for(DeviceKind device) {
  return device == DeviceKind::kCpu;
}

Result<Device> find_gpu(int /*index*/) {
  return unimplemented(
      "[cuda] this build has no CUDA; build Quire where nvcc is found, by QUIRE_CUDA=AUTO "
      "scripts/build.sh");
}

Status cuda_status(int index) {
  return find_gpu(index).status();
}

Result<std::unique_ptr<Platform>> make_cuda_platform(const PlatformConfig& /*config*/) {
  return cuda_status();
}

std::string gpu_driver_version() {
  return "unknown";
}

Status measure_attention(DeviceContext& /*context*/,
                         std::span<AttentionBackend* const> /*backends*/,
                         const MeasureConfig& /*config*/, const OnMeasured& /*on_measured*/) {
  return cuda_status();
}

Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int /*device*/) {
  return cuda_status();
}

}  // namespace quire
