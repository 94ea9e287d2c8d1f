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

  // The work that `enqueue` puts into the stream starts when `enqueue` has returned. After
  // kMostMicroseconds it starts anyway, so that an `enqueue` that waits for the work returns too.
  // Returns the status of `enqueue`.
  template <typename Enqueue>
  Status hold(CudaStream& stream, const Enqueue& enqueue) {
    close(stream);
    Status status = enqueue();
    open();
    return status;
  }

  static constexpr int64_t kMostMicroseconds = 100'000;

 private:
  void close(CudaStream& stream);
  void open();
  explicit LaunchGate(Buffer memory) : memory_(std::move(memory)) {}

  Buffer memory_;  // one int32_t, page-locked: the number of times that the gate was opened
  int32_t num_closed_ = 0;
};

}  // namespace quire::cuda
