// Small arrays on their way to the device, step after step: host memory that is written while
// earlier copies may still read their own part of it.
#pragma once

#include <vector>

#include "cuda/base/memory.h"
#include "cuda/base/stream.h"

namespace quire::cuda {

class PinnedRing {
 public:
  // More slots than steps in flight, so that begin() finds its slot free without waiting.
  static constexpr int kNumSlots = 4;

  static Result<PinnedRing> create(size_t slot_bytes);

  // The next slot, once the device has read what it held before: a wait, where there is one, counts
  // in the stream's traffic.
  Result<std::byte*> begin(CudaStream& stream);
  // After the copies that read the slot were enqueued.
  void end(CudaStream& stream);

 private:
  Buffer memory_;
  size_t slot_bytes_ = 0;
  std::vector<CudaEvent> read_;  // [kNumSlots]
  int slot_idx_ = 0;
};

}  // namespace quire::cuda
