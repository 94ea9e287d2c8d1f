#pragma once

#include <cstdint>
#include <limits>

namespace quire {

// A non-negative size. Sums and products saturate at INT64_MAX, so that they exceed any available
// memory.
class Saturated {
 public:
  constexpr Saturated(int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  constexpr int64_t get() const { return value_; }

  friend constexpr Saturated operator+(Saturated a, Saturated b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a.value_, b.value_, &sum) ? kLargest : sum;
  }
  friend constexpr Saturated operator*(Saturated a, Saturated b) {
    int64_t product = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &product) ? kLargest : product;
  }

 private:
  static constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

  int64_t value_;
};

}  // namespace quire
