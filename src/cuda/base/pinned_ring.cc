#include "cuda/base/pinned_ring.h"

namespace quire::cuda {

Result<PinnedRing> PinnedRing::create(size_t slot_bytes) {
  PinnedRing ring;
  ring.slot_bytes_ = (slot_bytes + 255) / 256 * 256;
  QUIRE_ASSIGN_OR_RETURN(ring.memory_, pinned_memory(ring.slot_bytes_ * kNumSlots));
  for (int i = 0; i < kNumSlots; ++i) {
    QUIRE_ASSIGN_OR_RETURN(CudaEvent event, CudaEvent::create());
    ring.read_.push_back(std::move(event));
  }
  return ring;
}

Result<std::byte*> PinnedRing::begin() {
  slot_idx_ = (slot_idx_ + 1) % kNumSlots;
  // Not a wait for results: the slot's reader ran kNumSlots steps ago.
  QUIRE_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(read_[static_cast<size_t>(slot_idx_)].get()));
  return static_cast<std::byte*>(memory_.data()) + static_cast<size_t>(slot_idx_) * slot_bytes_;
}

void PinnedRing::end(CudaStream& stream) {
  read_[static_cast<size_t>(slot_idx_)].record(stream);
}

}  // namespace quire::cuda
