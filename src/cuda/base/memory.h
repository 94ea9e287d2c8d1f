// Device memory, pinned host memory for copies to and from the device, and two classes that divide
// one allocation: BumpAllocator and PinnedRing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/numbers.h"
#include "cuda/base/stream.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// Allocates uninitialized device memory, aligned to at least 256 bytes. The message of
// kResourceExhausted contains the requested and the free bytes.
Result<Buffer> device_memory(size_t num_bytes);

// Allocates device memory for a tensor.
Result<Tensor> device_tensor(const Shape& shape, DType dtype);

// Allocates page-locked host memory.
Result<Buffer> pinned_memory(size_t num_bytes);

// The number of device and pinned allocations of this process so far. A step makes none.
int64_t num_allocations();

// Hands out consecutive parts of one allocation. Without a base address it only computes how many
// bytes the parts need.
class BumpAllocator {
 public:
  explicit BumpAllocator(void* base = nullptr) : base_(static_cast<std::byte*>(base)) {}

  // Every part is 256-byte aligned. Returns null without a base.
  template <typename T>
  T* allocate(size_t count) {
    const size_t at = num_bytes_;
    num_bytes_ += round_up(count * sizeof(T), 256);
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  size_t num_bytes() const { return num_bytes_; }

 private:
  std::byte* base_;
  size_t num_bytes_ = 0;
};

// A ring of pinned host memory for small arrays that each step copies to the device: the host
// writes one slot while earlier copies may still read the others.
class PinnedRing {
 public:
  // More slots than steps in flight, so that begin() finds its slot free without waiting.
  static constexpr int kNumSlots = 4;

  static Result<PinnedRing> create(size_t slot_bytes);

  // Returns the next slot once the device has read its previous contents. If it has to wait, the
  // stream's traffic counts the wait.
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
