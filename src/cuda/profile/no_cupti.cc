// Replaces cupti.cc if the toolkit has no CUPTI headers.
#include "platform/platform.h"

namespace quire {

Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int /*device*/) {
  return unavailable(
      "[profile] this build has no profiler, because CMake found no cupti.h; install CUPTI's "
      "headers "
      "with the CUDA toolkit and configure the build again");
}

}  // namespace quire
