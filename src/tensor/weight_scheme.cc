#include "tensor/weight_scheme.h"

#include <fmt/format.h>

#include "base/check.h"

namespace quire {

std::string describe(const WeightScheme& scheme) {
  const std::string_view values = dtype_name(scheme.values);
  switch (scheme.scales) {
    case ScaleLayout::kNone:
      return fmt::format("{} without scales", values);
    case ScaleLayout::kTensor:
      return fmt::format("{} with a scale per tensor", values);
    case ScaleLayout::kRows:
      return fmt::format("{} with a scale per row", values);
    case ScaleLayout::kBlocks:
      return fmt::format("{} with a scale per block of {} x {}", values, scheme.block_rows,
                         scheme.block_columns);
  }
  return std::string(values);
}

Shape scale_block(const WeightScheme& scheme, const Shape& matrix) {
  switch (scheme.scales) {
    case ScaleLayout::kNone:
      break;
    case ScaleLayout::kTensor:
      return matrix;
    case ScaleLayout::kRows:
      return {1, matrix[1]};
    case ScaleLayout::kBlocks:
      QUIRE_CHECK(scheme.block_rows > 0 && scheme.block_columns > 0,
                  "[weights] a block of scales has rows and columns");
      return {scheme.block_rows, scheme.block_columns};
  }
  QUIRE_CHECK(false, "[weights] a matrix without scales has no blocks of them");
}

Shape scales_shape(const WeightScheme& scheme, const Shape& matrix) {
  const Shape block = scale_block(scheme, matrix);
  return {(matrix[0] + block[0] - 1) / block[0], (matrix[1] + block[1] - 1) / block[1]};
}

}  // namespace quire
