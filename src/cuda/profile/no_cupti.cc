// Replaces cupti.cc if the toolkit has no CUPTI headers.
#include "platform/platform.h"

namespace quire {

Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int /*device*/) {
  return unavailable("[profile] this build was made without cupti.h");
}

}  // namespace quire
