#pragma once

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

// The order in which a device does its work. Operations enqueue; on a CPU they are simply done.
// The first failure of enqueued work is kept and read once a step by whoever waits for it.
class Stream {
 public:
  virtual ~Stream() = default;
};

}  // namespace quire
