#include "cuda/base/device_info.h"
#include "platform/platform.h"

namespace quire {

bool is_built_for(DeviceKind /*device*/) {
  return true;
}

Status cuda_status() {
  return cuda::open_device(0).status();
}

Result<std::unique_ptr<Platform>> make_cuda_platform(const PlatformConfig& config) {
  QUIRE_RETURN_IF_ERROR(cuda::open_device(config.device_index).status());
  return unimplemented("[cuda] the GPU engine is not complete yet; use --device cpu");
}

}  // namespace quire
