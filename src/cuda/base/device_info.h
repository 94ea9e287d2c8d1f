#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

struct DeviceInfo {
  Device device;
  int num_sms = 0;
  int64_t total_bytes = 0;
};

// Makes device `index` the calling thread's current device and describes it. Fails with
// kUnavailable if there is no driver, no device, or no kernel of this build for the device; with
// kInvalidArgument if there is no device with that index.
Result<DeviceInfo> open_device(int index);

// Sets the calling thread's current device to `index`, which open_device() has opened. Launches,
// allocations, streams and events use a thread's current device, which is device 0 on a new thread.
Status use_device(int index);

// Reads the device's free memory. Does not change the current device.
Result<int64_t> free_device_bytes(int index);

// Succeeds if this build has kernels for the current device's compute capability. Nothing is
// compiled at run time, so without them the first launch would fail.
cudaError_t find_kernel_image();

}  // namespace quire::cuda
