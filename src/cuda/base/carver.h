// Parts of one allocation, one after the other.
#pragma once

#include <cstddef>

namespace quire::cuda {

// Without an allocation it only adds up what the parts would take.
class Carver {
 public:
  explicit Carver(void* base = nullptr) : base_(static_cast<std::byte*>(base)) {}

  // Every part begins at a multiple of 256 bytes. Null without an allocation.
  template <typename T>
  T* take(size_t count) {
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
