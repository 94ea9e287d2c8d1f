// Checks of activations, and loops over their rows. Activations are F32 tensors [num_rows, width],
// or heads [num_rows, num_heads, width].
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace quire::cpu {

// Below this number of elements, fork and join cost more than they save.
inline constexpr int64_t kParallelElements = 16384;

inline float* row(const TensorView& x, int64_t t) {
  return x.as<float>() + t * x.shape[1];
}

inline void check_rows(const TensorView& x, int64_t columns) {
  QUIRE_CHECK(x.dtype == DType::kF32 && x.shape.rank() == 2 && x.shape[1] == columns,
              "[ops] activations are not F32 rows of the operation's width");
}

// [tokens, num_heads, at least `width`]
inline void check_heads(const TensorView& x, int64_t num_heads, int64_t width) {
  QUIRE_CHECK(x.dtype == DType::kF32 && x.shape.rank() == 3 && x.shape[1] == num_heads &&
                  x.shape[2] >= width,
              "[ops] activations are not F32 heads of the operation's width");
}

inline void check_same(const TensorView& a, const TensorView& b) {
  check_rows(a, a.shape[1]);
  check_rows(b, a.shape[1]);
  QUIRE_CHECK(a.shape[0] == b.shape[0], "[ops] operands differ in rows");
}

// Calls body(i) for each i of [0, count), in parallel if num_elements is at least
// kParallelElements.
template <class Body>
void for_each(ThreadPool& pool, int64_t count, int64_t num_elements, const Body& body) {
  if (num_elements < kParallelElements) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  pool.parallel_for(count, body);
}

// Calls body(t) for each row, in parallel if there are enough elements.
template <class Body>
void for_rows(ThreadPool& pool, const TensorView& x, const Body& body) {
  for_each(pool, x.shape[0], x.shape[0] * x.shape[1], body);
}

}  // namespace quire::cpu
