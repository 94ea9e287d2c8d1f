// Where a device's time goes while it serves, from the device's own records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quire/status.h"

namespace quire {

struct ProfileShare {
  std::string name;
  int64_t count = 0;  // of kernels or copies; 0 for idleness
  double seconds = 0.0;
};

// Steps that decode alone, replayed as graphs.
struct DecodeProfile {
  int64_t num_steps = 0;
  double seconds = 0.0;               // from one step's results to the next one's
  double idle_between_seconds = 0.0;  // around the copies that begin and end a step
  double idle_within_seconds = 0.0;   // between its kernels
};

struct DeviceProfile {
  double elapsed_s = 0.0;             // from start() to stop()
  std::vector<ProfileShare> shares;   // add up to elapsed_s: matrix products, …, idle
  std::vector<ProfileShare> kernels;  // by name, the longest together first
  DecodeProfile decode;
};

class DeviceProfiler {
 public:
  virtual ~DeviceProfiler() = default;
  virtual Status start() = 0;
  // Waits for the device. kUnavailable where nothing ran on one since start().
  virtual Result<DeviceProfile> stop() = 0;
};

// Profiles the GPU of this index; records of other devices are left out. It is made before the
// engine, one at a time. Fails as cuda_status(device) where there is no such GPU, and as
// kUnavailable without the library that keeps records.
Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int device);

}  // namespace quire
