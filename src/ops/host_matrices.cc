#include "ops/host_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/dtype.h"
#include "tensor/finite.h"

namespace quire {
namespace {

// Quantizes one row, and returns the scale of its values; NaN: the row has an infinity or a NaN.
float quantize_row(const TensorView& row, uint8_t* values) {
  if (!all_finite(row)) return std::numeric_limits<float>::quiet_NaN();
  const int64_t count = row.shape.num_elements();
  float largest = 0.0F;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(element_as_f32(row, i)));
  const float scale = e4m3_scale(largest);
  for (int64_t i = 0; i < count; ++i) values[i] = f32_to_e4m3(element_as_f32(row, i) / scale);
  return scale;
}

// Copies `count` elements of the pool, from element `first` on.
void copy_repeated(const TensorView& pool, int64_t first, int64_t count, std::byte* out) {
  const auto element_bytes = static_cast<int64_t>(dtype_bytes(pool.dtype));
  const int64_t length = pool.shape.num_elements();
  for (int64_t at = first % length; count > 0; at = 0) {
    const int64_t piece = std::min(count, length - at);
    std::memcpy(out, pool.as<std::byte>() + at * element_bytes,
                static_cast<size_t>(piece * element_bytes));
    out += piece * element_bytes;
    count -= piece;
  }
}

Result<TensorView> write_out(const RepeatedRows& rows, std::vector<Tensor>& copies,
                             ThreadPool& threads) {
  QUIRE_ASSIGN_OR_RETURN(Tensor out, Tensor::host(rows.shape, rows.pool.dtype));
  threads.parallel_for(rows.shape[0], [&](int64_t row) {
    copy_repeated(rows.pool, rows.first + row * rows.row_stride, rows.shape[1],
                  out.view.rows(row, 1).as<std::byte>());
  });
  copies.push_back(std::move(out));
  return copies.back().view;
}

// Returns these columns of a matrix with a scale per row.
Result<WeightView> columns_of(const WeightView& matrix, const Slice& columns,
                              std::vector<Tensor>& copies) {
  const Shape& shape = matrix.values.shape;
  if (columns.first == 0 && columns.count == shape[1]) return matrix;
  QUIRE_ASSIGN_OR_RETURN(Tensor copy, Tensor::host({shape[0], columns.count}, matrix.values.dtype));
  const auto element_bytes = static_cast<int64_t>(dtype_bytes(matrix.values.dtype));
  for (int64_t row = 0; row < shape[0]; ++row) {
    std::memcpy(copy.view.as<std::byte>() + row * columns.count * element_bytes,
                matrix.values.as<std::byte>() + (row * shape[1] + columns.first) * element_bytes,
                static_cast<size_t>(columns.count * element_bytes));
  }
  WeightView part = matrix;
  part.values = copy.view;
  copies.push_back(std::move(copy));
  return part;
}

Status add_repeated(const RepeatedMatrices& from, std::vector<WeightView>& matrices,
                    std::vector<Tensor>& copies, ThreadPool& threads) {
  for (const RepeatedRows& rows : from.each) {
    QUIRE_ASSIGN_OR_RETURN(const TensorView values, write_out(rows, copies, threads));
    matrices.emplace_back(values);
  }
  return {};
}

}  // namespace

Status check_finite(const TensorView& matrix) {
  for (int64_t row = 0; row < matrix.shape[0]; ++row) {
    if (all_finite(matrix.rows(row, 1))) continue;
    return invalid_argument(
        fmt::format("got an infinity or a NaN in row {}, expected finite numbers; download the "
                    "checkpoint again",
                    row));
  }
  return {};
}

Status check_vector(const TensorView& vector) {
  if (is_weight_dtype(vector.dtype)) return {};
  return invalid_argument(
      fmt::format("[ops] unsupported type of a vector; got {}, expected f32, f16 or bf16",
                  dtype_name(vector.dtype)));
}

Result<WeightView> quantize_rows(const TensorView& matrix, const WeightScheme& scheme,
                                 std::vector<Tensor>& copies, ThreadPool& threads) {
  QUIRE_ASSIGN_OR_RETURN(Tensor values, Tensor::host(matrix.shape, scheme.values));
  QUIRE_ASSIGN_OR_RETURN(Tensor scales,
                         Tensor::host(scales_shape(scheme, matrix.shape), DType::kF32));
  const int64_t num_rows = matrix.shape[0];
  float* const scale = scales.view.as<float>();
  threads.parallel_for(num_rows, [&](int64_t row) {
    scale[row] =
        quantize_row(matrix.rows(row, 1), values.view.as<uint8_t>() + row * matrix.shape[1]);
  });
  const bool is_broken = std::any_of(scale, scale + num_rows, [](float x) { return x != x; });
  if (is_broken) return check_finite(matrix);
  const WeightView quantized(values.view, scales.view, scheme);
  copies.push_back(std::move(values));
  copies.push_back(std::move(scales));
  return quantized;
}

Result<std::vector<WeightView>> matrices_in_memory(const LinearSource& source,
                                                   std::vector<Tensor>& copies,
                                                   ThreadPool& threads) {
  std::vector<WeightView> matrices;
  if (const auto* stored = std::get_if<StoredMatrices>(&source.numbers)) {
    matrices.assign(stored->each.begin(), stored->each.end());
  } else if (const auto* repeated = std::get_if<RepeatedMatrices>(&source.numbers)) {
    QUIRE_RETURN_IF_ERROR(add_repeated(*repeated, matrices, copies, threads));
  } else if (const auto* plain = std::get_if<MatricesToQuantize>(&source.numbers)) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<WeightView> values,
                           std::visit(
                               [&](const auto& from) {
                                 return matrices_in_memory({.numbers = from}, copies, threads);
                               },
                               plain->from));
    for (const WeightView& value : values) {
      QUIRE_ASSIGN_OR_RETURN(const WeightView quantized,
                             quantize_rows(value.values, plain->scheme, copies, threads));
      QUIRE_ASSIGN_OR_RETURN(matrices.emplace_back(),
                             columns_of(quantized, plain->columns, copies));
    }
  }
  return matrices;
}

}  // namespace quire
