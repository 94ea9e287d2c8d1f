// A file that is written in order: a header, then tensors whose offsets are known before any of
// them is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// Writes row `row` of a tensor. Several threads may call it for different rows. A row does not
// depend on other rows, so the output does not depend on the number of threads.
using RowWriter = std::function<Status(int64_t row, std::byte* out)>;

struct PlannedTensor {
  std::string name;    // in the output
  std::string source;  // in the checkpoint
  int64_t num_rows = 1;
  int64_t row_bytes = 0;
  uint64_t begin = 0;  // in the file
  // Opens the source's tensor. It is released after the last row.
  std::function<Result<RowWriter>()> open;

  uint64_t end() const { return begin + static_cast<uint64_t>(num_rows * row_bytes); }
};

struct OutputPlan {
  std::string header;
  std::vector<PlannedTensor> tensors;  // by ascending `begin`; gaps between them are zeros
  uint64_t file_bytes = 0;
};

// The numbers that a type of the output stores.
struct NumberRange {
  float largest = std::numeric_limits<float>::max();
  std::string_view type = {};  // for errors
};

// Reads row `row` of an F32, F16 or BF16 matrix, or all of a vector, as F32. Fails if a number is
// an infinity or a NaN, or out of `range`; `name` names the tensor.
Status read_row(const TensorView& tensor, int64_t row, std::string_view name,
                const NumberRange& range, float* out);

}  // namespace quire
