// The part of a weight that one of several ranks holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tensor/weight_scheme.h"

namespace quire {

// A contiguous range of a weight's rows or columns.
struct Slice {
  int64_t first = 0;
  int64_t count = 0;
};

// This rank's equal part of `total`, which must be a multiple of the number of ranks. Heads are
// stored one after another, so a part of the rows is a part of the heads if the number of heads is
// also a multiple.
constexpr Slice shard(int64_t total, const Parallel& parallel) {
  const int64_t count = total / parallel.size;
  return {count * parallel.rank, count};
}

// Slices a matrix together with its scales. Fails if the slice's border cuts a block that shares
// one scale; `name` names the matrix in the error. Row slices are views of the same memory; column
// slices are copied into `copies`, which the result refers to.
Result<WeightView> slice_rows(const WeightView& matrix, const Slice& slice, std::string_view name);
Result<WeightView> slice_columns(const WeightView& matrix, const Slice& slice,
                                 std::string_view name, std::vector<Tensor>& copies);

}  // namespace quire
