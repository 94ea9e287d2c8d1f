// Profiles how a device spends its time while it serves, from the device's own activity records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quire/status.h"

namespace quire {

struct ProfileShare {
  std::string name;
  int64_t count = 0;  // number of kernels or copies; 0 for idle time
  double seconds = 0.0;
};

// Decode-only steps, replayed as graphs.
struct DecodeProfile {
  int64_t num_steps = 0;
  double seconds = 0.0;               // from one step's results to the next step's
  double idle_between_seconds = 0.0;  // around the copies that begin and end a step
  double idle_within_seconds = 0.0;   // between its kernels
};

struct DeviceProfile {
  double elapsed_s = 0.0;             // from start() to stop()
  std::vector<ProfileShare> shares;   // add up to elapsed_s: matrix products, …, idle
  std::vector<ProfileShare> kernels;  // by name, the largest total first
  DecodeProfile decode;
};

class DeviceProfiler {
 public:
  virtual ~DeviceProfiler() = default;
  virtual Status start() = 0;
  // Waits for the device. kUnavailable when the device ran nothing since start().
  virtual Result<DeviceProfile> stop() = 0;
};

// Profiles the GPU with this index; records of other devices are ignored. Create it before the
// engine; only one may exist at a time. Fails as cuda_status(device) when there is no such GPU, and
// with kUnavailable without the profiling library.
Result<std::unique_ptr<DeviceProfiler>> make_device_profiler(int device);

}  // namespace quire
