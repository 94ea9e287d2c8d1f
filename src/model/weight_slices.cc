// One rank's part of a matrix, together with its scales.
#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "model/weights.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

// The scales of a slice along one axis.
struct ScaleSlice {
  int64_t block = 0;     // numbers per scale along the axis, in the slice
  Slice scales;          // of the matrix's scales
  int64_t repeated = 1;  // copies in the slice of each of the matrix's scales
};

// `block` is the number of the matrix's weights per scale along the axis.
ScaleSlice slice_of_scales(const Slice& slice, int64_t block, int64_t total) {
  if (block >= total) return {block, {0, 1}};
  const int64_t cut = cut_block(block, slice, total);
  return {cut, {slice.first / cut, ceil_div(slice.count, cut)}, block / cut};
}

bool is_cut(const ScaleSlice& slice) {
  return slice.repeated > 1;
}

// Copies the scales of a slice: [number of rows of scales, number of columns of scales].
Result<TensorView> copy_scales(const TensorView& scales, const ScaleSlice& rows,
                               const ScaleSlice& columns, std::vector<Tensor>& copies) {
  QUIRE_ASSIGN_OR_RETURN(Tensor copy,
                         Tensor::host({rows.scales.count, columns.scales.count}, scales.dtype));
  const size_t element_bytes = dtype_bytes(scales.dtype);
  auto* out = copy.view.as<std::byte>();
  for (int64_t i = 0; i < rows.scales.count; ++i) {
    const int64_t row = (rows.scales.first + i) / rows.repeated;
    for (int64_t j = 0; j < columns.scales.count; ++j, out += element_bytes) {
      const int64_t column = (columns.scales.first + j) / columns.repeated;
      const auto from = static_cast<size_t>(row * scales.shape[1] + column) * element_bytes;
      std::memcpy(out, scales.as<std::byte>() + from, element_bytes);
    }
  }
  copies.push_back(std::move(copy));
  return copies.back().view;
}

// Gives `part`, whose values are already sliced, the scales and zero points of its blocks.
Status slice_scales(const WeightView& matrix, const ScaleSlice& rows, const ScaleSlice& columns,
                    WeightView& part, std::vector<Tensor>& copies) {
  if (is_cut(rows) || is_cut(columns)) {
    part.scheme.block_rows = rows.block;
    part.scheme.block_columns = columns.block;
  }
  QUIRE_ASSIGN_OR_RETURN(part.scales, copy_scales(matrix.scales, rows, columns, copies));
  if (matrix.zeros.data == nullptr) return {};
  QUIRE_ASSIGN_OR_RETURN(part.zeros, copy_scales(matrix.zeros, rows, columns, copies));
  return {};
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

InnerPart shard_inner(int64_t total, const std::optional<WeightFormat>& format,
                      const WeightStore& store, const Parallel& parallel) {
  const WeightScheme scheme = format ? format->scheme : WeightScheme();
  const bool keeps_whole = store.needs_whole_blocks() && has_fp8_blocks(scheme);
  return shard_blocks(total, keeps_whole ? std::lcm(scheme.block_rows, scheme.block_columns) : 1,
                      parallel);
}

Slice shard_axis(int64_t size, Split split, int num_heads,
                 const std::optional<WeightFormat>& format, const WeightStore& store,
                 const Parallel& parallel) {
  if (split == Split::kInnerRows || split == Split::kInnerColumns) {
    return shard_inner(size, format, store, parallel).slice;
  }
  return num_heads > 0 ? shard_heads(size, num_heads, parallel) : shard(size, parallel);
}

Status check_column_slice(const WeightScheme& scheme, const Shape& matrix, bool has_order,
                          const Slice& slice, std::string_view name) {
  if (has_order) {
    return unimplemented(
        fmt::format("[model] tensor {}: its columns are in an order of groups (act-order), and "
                    "cannot be divided; set `tensor_parallel_size` to 1",
                    quote_name(name)));
  }
  if (!is_integer(scheme) || scheme.scales == ScaleLayout::kNone) return {};
  const int64_t group = scale_block(scheme, matrix)[1];
  if (cut_block(group, slice, matrix[1]) == group) return {};
  return invalid_argument(
      fmt::format("[model] tensor {}: a rank's part cuts a group with one scale; got {} of its {} "
                  "columns, which is no multiple of the groups' {}; choose another "
                  "`tensor_parallel_size`",
                  quote_name(name), slice.count, matrix[1], group));
}

Result<WeightView> slice_rows(const WeightView& matrix, const Slice& slice,
                              std::vector<Tensor>& copies) {
  WeightView part = matrix;
  part.values = matrix.values.rows(slice.first, slice.count);
  if (matrix.scheme.scales == ScaleLayout::kNone) return part;
  const Shape& shape = matrix.values.shape;
  const Shape block = scale_block(matrix.scheme, shape);
  const ScaleSlice rows = slice_of_scales(slice, block[0], shape[0]);
  if (!is_cut(rows)) {
    part.scales = matrix.scales.rows(rows.scales.first, rows.scales.count);
    if (matrix.zeros.data != nullptr) {
      part.zeros = matrix.zeros.rows(rows.scales.first, rows.scales.count);
    }
    return part;
  }
  const ScaleSlice columns = {block[1], {0, matrix.scales.shape[1]}};
  QUIRE_RETURN_IF_ERROR(slice_scales(matrix, rows, columns, part, copies));
  return part;
}

Result<WeightView> slice_columns(const WeightView& matrix, const Slice& slice,
                                 std::string_view name, std::vector<Tensor>& copies) {
  WeightView part = matrix;
  const Shape& shape = matrix.values.shape;
  QUIRE_RETURN_IF_ERROR(
      check_column_slice(matrix.scheme, shape, matrix.order.data != nullptr, slice, name));
  if (matrix.scheme.scales != ScaleLayout::kNone) {
    const Shape block = scale_block(matrix.scheme, shape);
    const ScaleSlice columns = slice_of_scales(slice, block[1], shape[1]);
    const ScaleSlice rows = {block[0], {0, matrix.scales.shape[0]}};
    QUIRE_RETURN_IF_ERROR(slice_scales(matrix, rows, columns, part, copies));
  }
  QUIRE_ASSIGN_OR_RETURN(part.values, copy_columns(matrix.values, slice, copies));
  return part;
}

Result<WeightView> cut_blocks(const WeightView& matrix, int64_t block_rows, int64_t block_columns,
                              std::vector<Tensor>& copies) {
  WeightView cut = matrix;
  const Shape& shape = matrix.values.shape;
  const Shape block = scale_block(matrix.scheme, shape);
  QUIRE_CHECK(block[0] % block_rows == 0 && block[1] % block_columns == 0,
              "[model] a block of scales is not cut into equal ones");
  cut.scheme.block_rows = block_rows;
  cut.scheme.block_columns = block_columns;
  const Shape grid = scales_shape(cut.scheme, shape);
  const ScaleSlice rows = {block_rows, {0, grid[0]}, block[0] / block_rows};
  const ScaleSlice columns = {block_columns, {0, grid[1]}, block[1] / block_columns};
  QUIRE_RETURN_IF_ERROR(slice_scales(matrix, rows, columns, cut, copies));
  return cut;
}

BlockMatrix slice_rows(const BlockMatrix& matrix, const Slice& slice) {
  QUIRE_CHECK(matrix.paired_rows == 0 || slice.first % matrix.paired_rows == 0,
              "[model] a rank's rows of a GGUF matrix are not whole heads");
  BlockMatrix part = matrix;
  part.bytes += slice.first * matrix.blocks_per_row() * matrix.type->block_bytes;
  part.shape = {slice.count, matrix.shape[1]};
  return part;
}

Result<BlockMatrix> slice_columns(const BlockMatrix& matrix, const Slice& slice,
                                  std::vector<Tensor>& copies) {
  const int64_t elements = matrix.type->block_elements;
  QUIRE_CHECK(slice.first % elements == 0 && slice.count % elements == 0,
              "[model] a rank's columns of a GGUF matrix are not whole blocks");
  const TensorView blocks = {const_cast<std::byte*>(matrix.bytes),
                             DType::kI8,
                             {matrix.shape[0], matrix.blocks_per_row() * matrix.type->block_bytes}};
  const int64_t block_bytes = matrix.type->block_bytes;
  QUIRE_ASSIGN_OR_RETURN(const TensorView copy, copy_columns(blocks,
                                                             {slice.first / elements * block_bytes,
                                                              slice.count / elements * block_bytes},
                                                             copies));
  BlockMatrix part = matrix;
  part.bytes = copy.as<std::byte>();
  part.shape = {matrix.shape[0], slice.count};
  return part;
}

}  // namespace quire
