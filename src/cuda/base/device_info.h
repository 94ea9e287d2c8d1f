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

// Makes device `index` the calling thread's current one and describes it. Once per context.
// kUnavailable where there is no driver, no device at all, or no kernel of this build for it,
// kInvalidArgument for a number that no device has: the message says which.
Result<DeviceInfo> open_device(int index);

// Makes a device that was opened before the calling thread's current one. Launches, allocations and
// what is created go to a thread's current device, which is device 0 on a new thread.
Status use_device(int index);

// The device's free memory at the time of the call. Leaves the current device as it is.
Result<int64_t> free_device_bytes(int index);

}  // namespace quire::cuda
