// Keeps the host's time out of measurements of kernels.
#pragma once

#include <cstdint>

#include "cuda/base/launch.h"
#include "cuda/base/memory.h"

namespace quire::cuda {

// Holds a stream until the host has enqueued a series of kernels. Many kernels take less time on
// the device than the host needs to launch them. Without a gate, the measured time of a series of
// them is the time of the launches.
class LaunchGate {
 public:
  static Result<LaunchGate> create();

  // Work that is enqueued after close() starts after open(). It starts without open(), too, after
  // kMostMicroseconds, so that a call that waits for the device while the gate is closed ends.
  void close(CudaStream& stream);
  void open();

  static constexpr int64_t kMostMicroseconds = 100'000;

 private:
  explicit LaunchGate(Buffer memory) : memory_(std::move(memory)) {}

  Buffer memory_;  // one int32_t, page-locked: the number of times that the gate was opened
  int32_t num_closed_ = 0;
};

}  // namespace quire::cuda
