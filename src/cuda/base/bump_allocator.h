// Hands out consecutive parts of one allocation.
#pragma once

#include <cstddef>

namespace quire::cuda {

// Without a base it only adds up the bytes that the parts need.
class BumpAllocator {
 public:
  explicit BumpAllocator(void* base = nullptr) : base_(static_cast<std::byte*>(base)) {}

  // Every part is 256-byte aligned. Returns null without a base.
  template <typename T>
  T* allocate(size_t count) {
    const size_t at = num_bytes_;
    num_bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  size_t num_bytes() const { return num_bytes_; }

 private:
  std::byte* base_;
  size_t num_bytes_ = 0;
};

}  // namespace quire::cuda
