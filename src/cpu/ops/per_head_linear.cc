#include "cpu/ops/per_head_linear.h"

#include "base/check.h"
#include "cpu/ops/products.h"

namespace quire::cpu {

Result<std::unique_ptr<CpuPerHeadLinear>> CpuPerHeadLinear::make(
    std::span<const TensorView> matrices, Products& products) {
  QUIRE_CHECK(!matrices.empty(), "[ops] make_per_head_linear: there are no heads");
  std::unique_ptr<CpuPerHeadLinear> linear(new CpuPerHeadLinear());
  for (const TensorView& matrix : matrices) {
    QUIRE_CHECK(matrix.shape == matrices.front().shape,
                "[ops] make_per_head_linear: the heads differ in shape");
    const WeightView weights(matrix);
    QUIRE_ASSIGN_OR_RETURN(linear->heads_.emplace_back(),
                           products.make_linear({.numbers = StoredMatrices{{&weights, 1}}}));
  }
  return linear;
}

size_t CpuPerHeadLinear::num_bytes() const {
  size_t bytes = 0;
  for (const auto& head : heads_) bytes += head->num_bytes();
  return bytes;
}

}  // namespace quire::cpu
