// One rank's part of a matrix, together with its scales.
#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "base/numbers.h"
#include "model/weights.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

// The slice of the scales along one axis; `block` is the number of weights per scale there.
Result<Slice> slice_of_scales(const Slice& slice, int64_t block, int64_t total,
                              std::string_view axis, std::string_view name) {
  const int64_t end = slice.first + slice.count;
  if (block >= total) return Slice{0, 1};
  if (slice.first % block != 0 || (end % block != 0 && end != total)) {
    return invalid_argument(
        fmt::format("[model] tensor {}: a part of it cuts a block of scales; got {} {} to {} of "
                    "blocks of {}, expected multiples; choose another `tensor_parallel_size`",
                    quote_name(name), axis, slice.first, end, block));
  }
  return Slice{slice.first / block, ceil_div(slice.count, block)};
}

Result<TensorView> copy_columns(const TensorView& view, const Slice& slice,
                                std::vector<Tensor>& copies) {
  QUIRE_ASSIGN_OR_RETURN(Tensor copy, Tensor::host({view.shape[0], slice.count}, view.dtype));
  const size_t element_bytes = dtype_bytes(view.dtype);
  const size_t row_bytes = static_cast<size_t>(slice.count) * element_bytes;
  for (int64_t row = 0; row < view.shape[0]; ++row) {
    const auto from = static_cast<size_t>(row * view.shape[1] + slice.first) * element_bytes;
    std::memcpy(copy.view.as<std::byte>() + static_cast<size_t>(row) * row_bytes,
                view.as<std::byte>() + from, row_bytes);
  }
  copies.push_back(std::move(copy));
  return copies.back().view;
}

}  // namespace

Result<WeightView> slice_rows(const WeightView& matrix, const Slice& slice, std::string_view name) {
  WeightView part = matrix;
  part.values = matrix.values.rows(slice.first, slice.count);
  if (matrix.scheme.scales == ScaleLayout::kNone) return part;
  const Shape& shape = matrix.values.shape;
  const int64_t block = scale_block(matrix.scheme, shape)[0];
  QUIRE_ASSIGN_OR_RETURN(const Slice scales, slice_of_scales(slice, block, shape[0], "rows", name));
  part.scales = matrix.scales.rows(scales.first, scales.count);
  if (matrix.zeros.data != nullptr) part.zeros = matrix.zeros.rows(scales.first, scales.count);
  return part;
}

Result<WeightView> slice_columns(const WeightView& matrix, const Slice& slice,
                                 std::string_view name, std::vector<Tensor>& copies) {
  WeightView part = matrix;
  if (matrix.order.data != nullptr) {
    return unimplemented(
        fmt::format("[model] tensor {}: its columns are in an order of groups (act-order), and "
                    "cannot be divided; set `tensor_parallel_size` to 1",
                    quote_name(name)));
  }
  if (matrix.scheme.scales != ScaleLayout::kNone) {
    const Shape& shape = matrix.values.shape;
    const int64_t block = scale_block(matrix.scheme, shape)[1];
    QUIRE_ASSIGN_OR_RETURN(const Slice scales,
                           slice_of_scales(slice, block, shape[1], "columns", name));
    if (block < shape[1]) {
      QUIRE_ASSIGN_OR_RETURN(part.scales, copy_columns(matrix.scales, scales, copies));
      if (matrix.zeros.data != nullptr) {
        QUIRE_ASSIGN_OR_RETURN(part.zeros, copy_columns(matrix.zeros, scales, copies));
      }
    }
  }
  QUIRE_ASSIGN_OR_RETURN(part.values, copy_columns(matrix.values, slice, copies));
  return part;
}

}  // namespace quire
