#pragma once

#include <cstdint>
#include <string>

namespace quire {

enum class DeviceKind { kCpu, kCuda };

// What a backend may ask about the machine it would run on.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  int compute_capability = 0;  // CUDA: 90 for sm_90; 0 on a CPU
  std::string name;
};

// What crossed from a device to the host: the price of asking a GPU. A CPU has none.
struct DeviceTraffic {
  int64_t num_copies = 0;  // device to host
  int64_t num_waits = 0;   // of the host for the device
};

// The order in which a device does its work. Operations enqueue; on a CPU they are simply done.
// The first failure of enqueued work is kept and read once a step by whoever waits for it.
class Stream {
 public:
  virtual ~Stream() = default;
};

}  // namespace quire
