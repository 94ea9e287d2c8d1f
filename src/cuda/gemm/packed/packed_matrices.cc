#include "cuda/gemm/packed/packed_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>

#include "base/numbers.h"

namespace quire::cuda {
namespace {

constexpr int64_t kGroupColumns = 32;
constexpr int64_t kColumnStep = 8;

void add_bits(std::byte* words, int64_t idx, uint32_t bits) {
  uint32_t word = 0;
  std::memcpy(&word, words + 4 * idx, 4);
  word |= bits;
  std::memcpy(words + 4 * idx, &word, 4);
}

// Writes 4 codes of E2M1 to a slice of zeros.
void pack_e2m1_quad(const uint8_t* codes, const PackedQuad& quad, std::byte* slice) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    const E2m1Place place = e2m1_place(quad.shift / 4 + i / 2 * 2);
    bits |= ((codes[i] & 7U) << place.magnitude | codes[i] >> 3U << place.sign) << (i % 2 * 16);
  }
  add_bits(slice, quad.word, bits);
}

// Writes 4 values, each plus `shift`, to a slice of zeros.
void pack_quad(const uint8_t* values, const PackedLayout& layout, uint8_t shift, int row,
               int column, std::byte* slice) {
  const int bits = layout.format.value_bits;
  const PackedQuad quad = packed_quad(bits, row, column);
  if (layout.is_e2m1()) return pack_e2m1_quad(values, quad, slice);
  std::array<uint32_t, 4> v = {};
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<uint8_t>(values[i] + shift);
  if (bits == 8) {
    add_bits(slice, quad.word, (v[0] | v[1] << 16) << quad.shift);
    add_bits(slice, quad.word + 1, (v[2] | v[3] << 16) << quad.shift);
    return;
  }
  std::array<uint32_t, 4> low = {};
  for (size_t i = 0; i < v.size(); ++i) low[i] = v[i] & 0xF;
  add_bits(slice, quad.word, (low[0] | low[2] << 8 | low[1] << 16 | low[3] << 24) << quad.shift);
  if (bits == 4) return;
  add_bits(slice, quad.high_word,
           (v[0] >> 4 | v[2] >> 4 << 4 | v[1] >> 4 << 16 | v[3] >> 4 << 20) << quad.high_shift);
}

// Packs one panel: rows from `first_row` of the matrix on. `to` is all zeros.
void pack_panel(const QuantizedMatrix& matrix, const PackedRows& rows, int64_t first_row,
                std::byte* to) {
  const PackedLayout& layout = rows.layout;
  const auto shift = static_cast<uint8_t>(layout.value_shift());
  const int64_t block_columns = layout.block_columns();
  const int64_t num_columns = matrix.num_columns();
  const int64_t count = std::min(kPanelRows, matrix.num_rows() - first_row);
  for (int64_t first = 0; first < num_columns; first += kQuantizedColumns) {
    const int64_t left = std::min(kQuantizedColumns, num_columns - first);
    for (int64_t row = 0; row < count; ++row) {
      const QuantizedRow from =
          matrix.read(first_row + row, first / kQuantizedColumns, ceil_div(left, kGroupColumns));
      for (int64_t in_row = 0; in_row < left; in_row += block_columns) {
        std::byte* const block = to + (first + in_row) / block_columns * layout.block_bytes();
        // A scale for more columns than a block has is repeated in each of the row's blocks.
        const bool is_shared = matrix.format().group_k > block_columns;
        write_quantized_header(from, is_shared ? 0 : in_row, row, layout.format,
                               block_columns / kGroupColumns, block);
        std::byte* const values = block + layout.header.num_bytes;
        const int64_t end = std::min(block_columns, left - in_row);
        for (int64_t column = 0; column < end; column += 4) {
          pack_quad(&from.values[static_cast<size_t>(in_row + column)], layout, shift,
                    static_cast<int>(row), static_cast<int>(column % kSliceColumns),
                    values + column / kSliceColumns * layout.slice_bytes());
        }
      }
    }
  }
}

}  // namespace

bool can_pack(const QuantizedFormat& format, int64_t num_columns) {
  const bool has_group = format.value_bits != 8 || format.group_k >= kGroupColumns;
  return has_group && num_columns % kColumnStep == 0;
}

int64_t packed_block_bytes(const GgufBlockType& type) {
  const PackedLayout layout = packed_layout(quantized_format(type));
  return ceil_div(layout.block_bytes() * type.block_elements, layout.block_columns() * kPanelRows);
}

int64_t packed_bytes(const WeightScheme& scheme, DType scales, const Shape& matrix) {
  const std::optional<QuantizedFormat> format = quantized_format(scheme, scales, matrix);
  if (!format || !can_pack(*format, matrix[1])) return 0;
  const PackedRows rows = {
      .layout = packed_layout(*format), .num_rows = matrix[0], .num_columns = matrix[1]};
  return rows.num_panels() * rows.panel_bytes();
}

namespace {

// The parts of a matrix that consists of these matrices, one below the other.
Result<std::vector<PackedRows>> parts_of(const std::vector<QuantizedMatrix>& matrices) {
  std::vector<PackedRows> parts;
  int64_t num_rows = 0;
  for (const QuantizedMatrix& matrix : matrices) {
    if (!can_pack(matrix.format(), matrix.num_columns())) {
      return unimplemented(fmt::format(
          "[ops] a matrix of integers cannot stay packed on a GPU; got {} columns and {} bits with "
          "groups of {}, expected a multiple of {} columns, and groups of at least {} with 8 bits",
          matrix.num_columns(), matrix.format().value_bits, matrix.format().group_k, kColumnStep,
          kGroupColumns));
    }
    const PackedLayout layout = packed_layout(matrix.format());
    const bool continues = !parts.empty() && parts.back().layout.format == layout.format &&
                           parts.back().num_rows % kPanelRows == 0;
    if (!continues) parts.push_back({layout, nullptr, num_rows, 0, matrix.num_columns()});
    parts.back().num_rows += matrix.num_rows();
    num_rows += matrix.num_rows();
  }
  return parts;
}

bool have_one_layout(const PackedRows& a, const PackedRows& b) {
  return a.layout.format == b.layout.format && a.first_row == b.first_row &&
         a.num_rows == b.num_rows && a.num_columns == b.num_columns;
}

}  // namespace

Result<PackedMatrices> PackedMatrices::allocate(const LinearSource& source, int64_t count) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<QuantizedMatrix> matrices, quantized_matrices(source));
  PackedMatrices packed;
  QUIRE_ASSIGN_OR_RETURN(packed.parts_, parts_of(matrices));
  packed.count_ = count;
  for (const PackedRows& part : packed.parts_) {
    packed.matrix_bytes_ += part.num_panels() * part.panel_bytes();
  }
  QUIRE_ASSIGN_OR_RETURN(packed.panels_,
                         device_memory(static_cast<size_t>(count * packed.matrix_bytes_)));
  auto* at = static_cast<std::byte*>(packed.panels_.data());
  for (PackedRows& part : packed.parts_) {
    part.panels = at;
    at += part.num_panels() * part.panel_bytes();
  }
  return packed;
}

Status PackedMatrices::load(int64_t idx, const LinearSource& source, WeightUpload& upload) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<QuantizedMatrix> matrices, quantized_matrices(source));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<PackedRows> parts, parts_of(matrices));
  if (!std::ranges::equal(parts, parts_, have_one_layout)) {
    return unimplemented(
        "[ops] the experts of a layer are quantized in different formats; expected one; use "
        "`device` cpu");
  }
  auto* at = static_cast<std::byte*>(panels_.data()) + idx * matrix_bytes_;
  auto matrix = matrices.begin();
  for (const PackedRows& part : parts) {
    const int64_t panel_bytes = part.panel_bytes();
    for (int64_t row = 0; row < part.num_rows; row += matrix->num_rows(), ++matrix) {
      const int64_t num_panels = ceil_div(matrix->num_rows(), kPanelRows);
      QUIRE_RETURN_IF_ERROR(
          upload.make(num_panels, panel_bytes, at, [&](int64_t panel, std::byte* to) {
            pack_panel(*matrix, part, panel * kPanelRows, to);
          }));
      at += num_panels * panel_bytes;
    }
  }
  return load_order(idx, source, upload);
}

// Some of the matrices may have an order of columns, and the others none.
Status PackedMatrices::load_order(int64_t idx, const LinearSource& source, WeightUpload& upload) {
  const std::span<const int32_t> order = column_order_of(source);
  if (order.empty()) return {};
  const Shape shape = {num_columns()};
  const auto upload_row = [&](int64_t row, const int32_t* numbers) {
    const TensorView to = {order_.view.as<int32_t>() + row * num_columns(), DType::kI32, shape};
    return upload.upload({const_cast<int32_t*>(numbers), DType::kI32, shape}, to);
  };
  if (order_.view.data == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(order_, device_tensor({count_, num_columns()}, DType::kI32));
    std::vector<int32_t> in_order(order.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    for (int64_t i = 0; i < count_; ++i) {
      if (i != idx) QUIRE_RETURN_IF_ERROR(upload_row(i, in_order.data()));
    }
  }
  return upload_row(idx, order.data());
}

}  // namespace quire::cuda
