// An upper bound of the memory that several objects take together, and the share of one object.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace quire {

// Counts bytes; allocates nothing. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns false and changes nothing if fewer bytes are left.
  bool reserve(size_t num_bytes) {
    size_t held = held_.load();
    do {
      if (num_bytes > max_bytes_ - held) return false;
    } while (!held_.compare_exchange_weak(held, held + num_bytes));
    return true;
  }
  void release(size_t num_bytes) { held_ -= num_bytes; }
  size_t held_bytes() const { return held_.load(); }

 private:
  const size_t max_bytes_;
  std::atomic<size_t> held_ = 0;  // at most max_bytes_
};

// The bytes that one object holds of a budget. The destructor releases them.
class ByteShare {
 public:
  explicit ByteShare(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  ByteShare(ByteShare&& other) noexcept
      : budget_(std::move(other.budget_)), num_bytes_(std::exchange(other.num_bytes_, 0)) {}
  ByteShare& operator=(ByteShare&&) = delete;
  ~ByteShare() {
    if (budget_) budget_->release(num_bytes_);
  }

  // Both return false and change nothing if the budget has fewer bytes left.
  bool grow(size_t num_bytes) {
    if (!budget_->reserve(num_bytes)) return false;
    num_bytes_ += num_bytes;
    return true;
  }
  bool grow_to(size_t num_bytes) { return num_bytes <= num_bytes_ || grow(num_bytes - num_bytes_); }
  // `num_bytes` must not exceed the bytes that the object holds.
  void shrink(size_t num_bytes) {
    budget_->release(num_bytes);
    num_bytes_ -= num_bytes;
  }

 private:
  std::shared_ptr<ByteBudget> budget_;  // null after a move
  size_t num_bytes_ = 0;
};

}  // namespace quire
