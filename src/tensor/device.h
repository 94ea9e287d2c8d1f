#pragma once

#include <cstdint>
#include <string>

namespace quire {

enum class DeviceKind { kCpu, kCuda };

// The properties of a device that a backend may query.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  int compute_capability = 0;  // CUDA: 90 for sm_90; 0 on a CPU
  std::string name;
};

// Transfers from a device to the host, and the host's waits. A CPU has none.
struct DeviceTraffic {
  int64_t num_copies = 0;  // device to host
  int64_t num_waits = 0;   // of the host for the device
};

// An ordered queue of device work. Operations are enqueued; a CPU runs them at once. The first
// failure of enqueued work is kept; the thread that waits for the work reads it once per step.
class Stream {
 public:
  virtual ~Stream() = default;
};

}  // namespace quire
