// Checks of the operands of operations on a GPU.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "tensor/tensor.h"

namespace quire::cuda {

struct OperandChecks {
  DType activation = DType::kBF16;  // the type of activations

  void rows(const TensorView& x, int64_t columns) const {
    QUIRE_CHECK(x.dtype == activation && x.shape.rank() == 2 && x.shape[1] == columns,
                "[ops] activations are not rows of the operation's width in the activations' type");
  }
  // [tokens, num_heads, at least `width`]
  void heads(const TensorView& x, int64_t num_heads, int64_t width) const {
    QUIRE_CHECK(x.dtype == activation && x.shape.rank() == 3 && x.shape[1] == num_heads &&
                    x.shape[2] >= width,
                "[ops] activations are not heads of the operation's width");
  }
  void same(const TensorView& a, const TensorView& b) const {
    rows(a, a.shape[1]);
    rows(b, a.shape[1]);
    QUIRE_CHECK(a.shape[0] == b.shape[0], "[ops] operands differ in rows");
  }
};

inline void check_angles(const TensorView& cos_sin) {
  QUIRE_CHECK(
      cos_sin.dtype == DType::kF32 && cos_sin.shape.rank() == 2 && cos_sin.shape[1] % 2 == 0,
      "[ops] angles are not F32 rows of cosines and as many sines");
}

}  // namespace quire::cuda
