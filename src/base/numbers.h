// Small arithmetic: rounded division, saturated sizes, ranges of valid values, and a hash.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace quire {

// x / y rounded up, for x >= 0 and y > 0. Also callable in device code.
template <typename T>
constexpr T ceil_div(T x, std::type_identity_t<T> y) {
  return (x + y - 1) / y;
}

// The least multiple of `step` that is at least x.
template <typename T>
constexpr T round_up(T x, std::type_identity_t<T> step) {
  return ceil_div(x, step) * step;
}

// SplitMix64 (Steele, Lea, Flood 2014): adjacent inputs give unrelated outputs. Not for secrets.
inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

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

// The range of a number's valid values; messages print it as "a number in [0, 1)".
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;

  // Returns false for NaN.
  bool contains(double value) const;
  std::string text() const;  // empty: any number
};

}  // namespace quire
