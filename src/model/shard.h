// Which part of a weight one rank of several holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "tensor/weight_scheme.h"

namespace quire {

// A contiguous part of a weight's rows or columns.
struct Slice {
  int64_t first = 0;
  int64_t count = 0;
};

// This rank's equal part of `total`, which the number of ranks must divide. Heads lie one after
// another, so that a part of the rows is a part of the heads where the heads divide too.
constexpr Slice shard(int64_t total, const Parallel& parallel) {
  const int64_t count = total / parallel.size;
  return {count * parallel.rank, count};
}

// The slice of a matrix with its scales. A border of the slice that cuts a block which shares one
// scale is refused; `name` names the matrix in the error. Rows are views of the same memory;
// columns are copied into `copies`, which the result refers to.
Result<WeightView> slice_rows(const WeightView& matrix, const Slice& slice, std::string_view name);
Result<WeightView> slice_columns(const WeightView& matrix, const Slice& slice,
                                 std::string_view name, std::vector<Tensor>& copies);

}  // namespace quire
