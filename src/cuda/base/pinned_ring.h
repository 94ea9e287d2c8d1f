// A ring of pinned host memory for small arrays that each step copies to the device: the host
// writes one slot while earlier copies may still read the others.
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

  // Returns the next slot once the device has read its previous contents. If it has to wait, the
  // wait counts in the stream's traffic.
  Result<std::byte*> begin(CudaStream& stream);
  // Called after the copies that read the slot are enqueued.
  void end(CudaStream& stream);

 private:
  Buffer memory_;
  size_t slot_bytes_ = 0;
  std::vector<CudaEvent> read_;  // [kNumSlots]
  int slot_idx_ = 0;
};

}  // namespace quire::cuda
