#include "ops/quantized_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <variant>

#include "tensor/dtype.h"

namespace quire {
namespace {

constexpr int64_t kGroupK = 32;

Status check_biases(std::span<const TensorView> biases, std::span<const QuantizedMatrix> matrices) {
  if (!biases.empty() && biases.size() != matrices.size()) {
    return invalid_argument(fmt::format("[ops] wrong number of biases; got {}, expected {}",
                                        biases.size(), matrices.size()));
  }
  for (size_t i = 0; i < biases.size(); ++i) {
    const TensorView& bias = biases[i];
    if (bias.data == nullptr) continue;
    const int64_t rows = matrices[i].num_rows();
    if (!is_weight_dtype(bias.dtype) || bias.shape.num_elements() != rows) {
      return invalid_argument(fmt::format("[ops] wrong bias {}; got {} elements of {}, expected {}",
                                          i, bias.shape.num_elements(), dtype_name(bias.dtype),
                                          rows));
    }
  }
  return {};
}

Status check_blocks(std::span<const BlockMatrix> matrices) {
  const int64_t columns = matrices.front().shape[1];
  for (size_t i = 0; i < matrices.size(); ++i) {
    const BlockMatrix& matrix = matrices[i];
    if (matrix.shape.rank() != 2 || matrix.shape[1] != columns || matrix.shape[0] < 1 ||
        columns < 1 || columns % matrix.type->block_elements != 0 || matrix.type->plain) {
      return invalid_argument(
          fmt::format("[ops] weight blocks {} have shape {} of {}; expected {} columns in whole "
                      "quantized blocks",
                      i, shape_text(matrix.shape), matrix.type->name, columns));
    }
  }
  return {};
}

// Whether the values and scales of a matrix of integers have the shapes and types of its scheme.
bool is_consistent(const WeightView& matrix) {
  const Shape& shape = matrix.values.shape;
  if (shape.rank() != 2 || shape[0] < 1 || shape[1] < 1) return false;
  if (matrix.scheme.scales == ScaleLayout::kNone) return false;
  return matrix.values.dtype == DType::kI8 && matrix.values.data != nullptr &&
         matrix.scales.data != nullptr && is_weight_dtype(matrix.scales.dtype) &&
         matrix.scales.shape == scales_shape(matrix.scheme, shape);
}

Status check_zeros(const WeightView& matrix, size_t i) {
  const TensorView& zeros = matrix.zeros;
  const bool has_zeros = zeros.data != nullptr;
  if (has_zeros != matrix.scheme.has_zeros) {
    return invalid_argument(fmt::format("[ops] weight block {} has {}zero points; expected {}", i,
                                        has_zeros ? "" : "no ", describe(matrix.scheme)));
  }
  if (!has_zeros || (zeros.dtype == DType::kI8 && zeros.shape == matrix.scales.shape)) return {};
  return invalid_argument(fmt::format(
      "[ops] weight block {} has wrong zero points; got {} of {}, expected {} of i8, as its scales",
      i, shape_text(zeros.shape), dtype_name(zeros.dtype), shape_text(matrix.scales.shape)));
}

std::span<const int32_t> order_of(const WeightView& matrix) {
  if (matrix.order.data == nullptr) return {};
  return {matrix.order.as<int32_t>(), static_cast<size_t>(matrix.values.shape[1])};
}

bool is_permutation_of_columns(std::span<const int32_t> order) {
  std::vector<bool> seen(order.size());
  for (const int32_t column : order) {
    if (column < 0 || column >= std::ssize(order) || seen[static_cast<size_t>(column)])
      return false;
    seen[static_cast<size_t>(column)] = true;
  }
  return true;
}

// Fails unless the matrix has the column order of the first one.
Status check_order(const WeightView& matrix, const WeightView& first, size_t i) {
  const TensorView& order = matrix.order;
  const int64_t num_columns = matrix.values.shape[1];
  if (order.data != nullptr &&
      (order.dtype != DType::kI32 || order.shape.num_elements() != num_columns)) {
    return invalid_argument(fmt::format(
        "[ops] weight block {} has a wrong order of columns; got {} of {}, expected {} of i32", i,
        order.shape.num_elements(), dtype_name(order.dtype), num_columns));
  }
  if (!std::ranges::equal(order_of(matrix), order_of(first))) {
    return invalid_argument(
        fmt::format("[ops] weight block {} has its columns in another order than the first", i));
  }
  if (i > 0 || is_permutation_of_columns(order_of(matrix))) return {};
  return invalid_argument(fmt::format(
      "[ops] weight block {} has a wrong order of columns; expected each of its {} columns once", i,
      num_columns));
}

Status check_integers(std::span<const WeightView> matrices) {
  const WeightView& first = matrices.front();
  for (size_t i = 0; i < matrices.size(); ++i) {
    const WeightView& matrix = matrices[i];
    const bool fits = matrix.scheme == first.scheme && is_consistent(matrix) &&
                      matrix.values.shape[1] == first.values.shape[1];
    if (!fits) {
      return invalid_argument(fmt::format(
          "[ops] weight block {} does not fit; got shape {} and scales {} of {}, "
          "expected {} with {} columns",
          i, shape_text(matrix.values.shape), shape_text(matrix.scales.shape),
          dtype_name(matrix.scales.dtype), describe(first.scheme), first.values.shape[1]));
    }
    QUIRE_RETURN_IF_ERROR(check_zeros(matrix, i));
    QUIRE_RETURN_IF_ERROR(check_order(matrix, first, i));
    if (!quantized_format(matrix.scheme, matrix.scales.dtype, matrix.values.shape)) {
      return unimplemented(
          fmt::format("[ops] unsupported weight scheme; got {}, expected groups of a multiple of "
                      "16 columns",
                      describe(matrix.scheme)));
    }
  }
  return {};
}

// Reads `groups` groups of 32 columns.
QuantizedRow read_blocks(const GgufBlockType& type, const std::byte* bytes, int64_t groups) {
  QuantizedRow row;
  QuantizedBlock block;
  for (int64_t at = 0; at < groups * kGroupK; at += type.block_elements) {
    type.read(bytes + at / type.block_elements * type.block_bytes, block);
    const auto idx = static_cast<size_t>(at / type.block_elements);
    row.scales[idx] = block.scale;
    row.minimums[idx] = block.minimum;
    std::copy_n(block.values.data(), type.block_elements, row.values.data() + at);
  }
  row.group_scales = block.group_scales;
  row.group_minimums = block.group_minimums;
  return row;
}

// Reads `groups` groups of 32 columns of row `row_idx`, from column `first_column` on.
QuantizedRow read_integers(const WeightView& matrix, int64_t row_idx, int64_t first_column,
                           int64_t groups, const QuantizedFormat& format) {
  const Shape scale_shape = scale_block(matrix.scheme, matrix.values.shape);
  const int64_t num_columns = matrix.values.shape[1];
  const int64_t count = std::min(groups * kGroupK, num_columns - first_column);
  const int offset = 1 << (matrix.scheme.bits - 1);  // makes signed integers unsigned
  const auto* const values = matrix.values.as<int8_t>() + row_idx * num_columns + first_column;
  const auto scale_bytes = static_cast<size_t>(format.scale_bytes());
  QuantizedRow row;
  for (int64_t k = 0; k < count; ++k) {
    row.values[static_cast<size_t>(k)] = static_cast<uint8_t>(values[k] + offset);
  }
  for (int64_t k = 0; k < count; k += format.group_k) {
    const auto group = static_cast<size_t>(k / format.group_k);
    const int64_t at =
        row_idx / scale_shape[0] * matrix.scales.shape[1] + (first_column + k) / scale_shape[1];
    std::memcpy(&row.scales[group], matrix.scales.as<std::byte>() + at * format.scale_bytes(),
                scale_bytes);
    if (!format.has_zeros) continue;
    row.zeros[group] = static_cast<uint8_t>(matrix.zeros.as<int8_t>()[at] + offset);
  }
  return row;
}

template <typename T>
void put(std::byte* base, int64_t idx, T value) {
  std::memcpy(base + idx * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

QuantizedFormat quantized_format(const GgufBlockType& type) {
  if (type.is_mxfp4) {
    return {.value_bits = 4,
            .group_k = type.group_elements,
            .offset = 0,
            .has_minimums = false,
            .scales = QuantizedScales::kE8m0,
            .values = QuantizedValues::kE2m1};
  }
  return {.value_bits = type.value_bits <= 4   ? 4
                        : type.value_bits <= 6 ? 6
                                               : 8,
          .group_k = type.group_elements,
          .offset = type.offset,
          .has_minimums = type.has_minimums,
          .scales = type.block_elements == kQuantizedColumns ? QuantizedScales::kBlockBytes
                                                             : QuantizedScales::kF16};
}

std::optional<QuantizedFormat> quantized_format(const WeightScheme& scheme, DType scales,
                                                const Shape& matrix) {
  const int64_t columns_per_scale = scale_block(scheme, matrix)[1];
  const int64_t group_k = columns_per_scale >= matrix[1]
                              ? kQuantizedColumns
                              : std::gcd(columns_per_scale, kQuantizedColumns);
  if (group_k < kGroupK / 2) return std::nullopt;
  return QuantizedFormat{.value_bits = scheme.bits,
                         .group_k = static_cast<int>(group_k),
                         .offset = scheme.has_zeros ? 0 : 1 << (scheme.bits - 1),
                         .has_minimums = false,
                         .scales = scales == DType::kF16    ? QuantizedScales::kF16
                                   : scales == DType::kBF16 ? QuantizedScales::kBF16
                                                            : QuantizedScales::kF32,
                         .has_zeros = scheme.has_zeros};
}

void write_quantized_header(const QuantizedRow& from, int64_t first_column, int64_t row,
                            const QuantizedFormat& format, int64_t groups, std::byte* header) {
  const QuantizedHeader places = quantized_header(format, groups);
  if (format.has_block_scales()) {
    put(header + places.block_scales, row, static_cast<uint16_t>(from.scales[0]));
    if (format.has_minimums) put(header + places.block_minimums, row, from.minimums[0]);
  }
  for (int64_t g = 0; g < format.num_groups(groups); ++g) {
    const auto group = static_cast<size_t>(first_column / format.group_k + g);
    const int64_t at = g * kPanelRows + row;
    if (format.has_zeros) put(header + places.zeros, at, from.zeros[group]);
    if (format.has_block_scales()) {
      put(header + places.scales, at, from.group_scales[group]);
      if (format.has_minimums) put(header + places.minimums, at, from.group_minimums[group]);
    } else if (format.scales == QuantizedScales::kF32) {
      put(header + places.scales, at, from.scales[group]);
    } else if (format.scales == QuantizedScales::kE8m0) {
      put(header + places.scales, at, static_cast<uint8_t>(from.scales[group]));
    } else {
      put(header + places.scales, at, static_cast<uint16_t>(from.scales[group]));
      if (format.has_minimums) put(header + places.minimums, at, from.minimums[group]);
    }
  }
}

QuantizedMatrix::QuantizedMatrix(const BlockMatrix& blocks)
    : blocks_(&blocks), shape_(blocks.shape), format_(quantized_format(*blocks.type)) {}

QuantizedMatrix::QuantizedMatrix(const WeightView& integers)
    : integers_(&integers),
      shape_(integers.values.shape),
      format_(*quantized_format(integers.scheme, integers.scales.dtype, integers.values.shape)) {}

QuantizedRow QuantizedMatrix::read(int64_t row, int64_t idx, int64_t groups) const {
  const int64_t first_column = idx * kQuantizedColumns;
  if (blocks_ == nullptr) return read_integers(*integers_, row, first_column, groups, format_);
  const GgufBlockType& type = *blocks_->type;
  return read_blocks(
      type, blocks_->row(row) + first_column / type.block_elements * type.block_bytes, groups);
}

bool is_quantized(const LinearSource& source) {
  if (const auto* blocks = std::get_if<MatricesInBlocks>(&source.numbers)) {
    return !blocks->each.empty();
  }
  const auto* const stored = std::get_if<StoredMatrices>(&source.numbers);
  return stored != nullptr && !stored->each.empty() && is_integer(stored->each.front().scheme);
}

Result<std::vector<QuantizedMatrix>> quantized_matrices(const LinearSource& source) {
  std::vector<QuantizedMatrix> matrices;
  if (const auto* blocks = std::get_if<MatricesInBlocks>(&source.numbers)) {
    QUIRE_RETURN_IF_ERROR(check_blocks(blocks->each));
    for (const BlockMatrix& matrix : blocks->each) matrices.emplace_back(matrix);
  } else {
    const auto& integers = std::get<StoredMatrices>(source.numbers);
    QUIRE_RETURN_IF_ERROR(check_integers(integers.each));
    for (const WeightView& matrix : integers.each) matrices.emplace_back(matrix);
  }
  QUIRE_RETURN_IF_ERROR(check_biases(source.biases, matrices));
  return matrices;
}

std::span<const int32_t> column_order_of(const LinearSource& source) {
  const auto* const integers = std::get_if<StoredMatrices>(&source.numbers);
  return integers == nullptr ? std::span<const int32_t>() : order_of(integers->each.front());
}

}  // namespace quire
