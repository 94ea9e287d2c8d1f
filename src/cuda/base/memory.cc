#include "cuda/base/memory.h"

#include <fmt/format.h>

#include <atomic>

namespace quire::cuda {
namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

int64_t num_allocations() {
  return allocations;
}

Result<Buffer> device_memory(size_t num_bytes) {
  if (num_bytes == 0) return Buffer();
  ++allocations;
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, num_bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // not sticky: the next call starts clean
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    (void)cudaMemGetInfo(&free_bytes, &total_bytes);
    return resource_exhausted(fmt::format(
        "[cuda] the device is out of memory; got a request of {} bytes with {} of {} bytes free; "
        "lower `gpu_memory_utilization`, `max_model_len` or `max_num_seqs`",
        num_bytes, free_bytes, total_bytes));
  }
  QUIRE_RETURN_IF_ERROR(to_status(error, "cudaMalloc"));
  return Buffer(data, num_bytes, [](void* memory, size_t) { (void)cudaFree(memory); });
}

Result<Tensor> device_tensor(const Shape& shape, DType dtype) {
  const auto num_bytes = static_cast<size_t>(shape.num_elements()) * dtype_bytes(dtype);
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(num_bytes));
  void* data = buffer.data();
  return Tensor{std::move(buffer), {data, dtype, shape}};
}

Result<Buffer> pinned_memory(size_t num_bytes) {
  if (num_bytes == 0) return Buffer();
  ++allocations;
  void* data = nullptr;
  const cudaError_t error = cudaMallocHost(&data, num_bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // the error is not sticky here either
    return resource_exhausted(fmt::format(
        "[cuda] the host has no page-locked memory left; got a request of {} bytes; lower "
        "`max_num_batched_tokens` or `max_num_seqs`, or raise the limit on locked memory",
        num_bytes));
  }
  QUIRE_RETURN_IF_ERROR(to_status(error, "cudaMallocHost"));
  return Buffer(data, num_bytes, [](void* memory, size_t) { (void)cudaFreeHost(memory); });
}

Result<PinnedRing> PinnedRing::create(size_t slot_bytes) {
  PinnedRing ring;
  ring.slot_bytes_ = round_up(slot_bytes, 256);
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
