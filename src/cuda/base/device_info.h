#pragma once

#include <cstdint>

#include "quire/status.h"
#include "tensor/device.h"

namespace quire::cuda {

struct DeviceInfo {
  Device device;
  int num_multiprocessors = 0;
  int64_t total_bytes = 0;
};

// Makes device `index` this thread's current one. kUnavailable where there is no driver, no device
// at all, or no kernel of this build for it, kInvalidArgument for a number that none has: the
// message says which.
Result<DeviceInfo> open_device(int index);

// Of the current device, right now.
Result<int64_t> free_device_bytes();

}  // namespace quire::cuda
