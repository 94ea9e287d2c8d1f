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

Result<std::byte*> PinnedRing::begin(CudaStream& stream) {
  slot_idx_ = (slot_idx_ + 1) % kNumSlots;
  const CudaEvent& read = read_[static_cast<size_t>(slot_idx_)];
  if (!read.has_passed()) QUIRE_RETURN_IF_ERROR(read.wait(stream));
  return static_cast<std::byte*>(memory_.data()) + static_cast<size_t>(slot_idx_) * slot_bytes_;
}

void PinnedRing::end(CudaStream& stream) {
  read_[static_cast<size_t>(slot_idx_)].record(stream);
}

}  // namespace quire::cuda
