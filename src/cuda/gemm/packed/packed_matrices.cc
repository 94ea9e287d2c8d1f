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

// The codes of E2M1 in half a word: code c is kE2m1Bits[i][c] in place i.
constexpr auto kE2m1Bits = [] {
  std::array<std::array<uint16_t, 16>, 4> bits = {};
  for (int i = 0; i < 4; ++i) {
    const E2m1Place place = e2m1_place(i);
    for (uint32_t code = 0; code < 16; ++code) {
      bits[static_cast<size_t>(i)][code] =
          static_cast<uint16_t>((code & 7U) << place.magnitude | code >> 3U << place.sign);
    }
  }
  return bits;
}();

// 4 columns of row `row` of a word, 0 or 1.
uint32_t e2m1_bits(const uint8_t* codes, size_t row) {
  const auto& low = kE2m1Bits[row];
  const auto& high = kE2m1Bits[row + 2];
  return low[codes[0]] | uint32_t{low[codes[1]]} << 16 | high[codes[2]] |
         uint32_t{high[codes[3]]} << 16;
}

// 4 columns in the order of a word's nibbles, a byte each.
uint32_t in_nibble_order(const uint8_t* values) {
  return values[0] | uint32_t{values[2]} << 8 | uint32_t{values[1]} << 16 |
         uint32_t{values[3]} << 24;
}

// The upper 2 of the 6 bits of in_nibble_order(), as a word of such bits has them.
uint32_t upper_bits(uint32_t values) {
  return (values >> 4 & 0x00030003U) | (values >> 8 & 0x00300030U);
}

// Packs rows `row` and `row` + 8 of a slice, which share words. The slice is all zeros there.
void pack_two_rows(const uint8_t* upper, const uint8_t* lower, const PackedLayout& layout, int row,
                   std::byte* slice) {
  const int bits = layout.format.value_bits;
  const auto put = [&](int word, uint32_t value) { std::memcpy(slice + 4 * word, &value, 4); };
  for (int column = 0; column < kSliceColumns; column += 4) {
    const PackedQuad quad = packed_quad(bits, row, column);
    const uint8_t* const u = upper + column;
    const uint8_t* const l = lower + column;
    if (layout.is_e2m1()) {
      put(quad.word, e2m1_bits(u, 0) | e2m1_bits(l, 1));
    } else if (bits == 8) {
      put(quad.word, u[0] | l[0] << 8 | u[1] << 16 | uint32_t{l[1]} << 24);
      put(quad.word + 1, u[2] | l[2] << 8 | u[3] << 16 | uint32_t{l[3]} << 24);
    } else {
      constexpr uint32_t kLower4Bits = 0x0F0F0F0F;
      const uint32_t of_upper = in_nibble_order(u);
      const uint32_t of_lower = in_nibble_order(l);
      put(quad.word, (of_upper & kLower4Bits) | (of_lower & kLower4Bits) << 4);
      if (bits == 4) continue;
      uint32_t word = 0;  // has the upper bits of two steps
      std::memcpy(&word, slice + 4 * quad.high_word, 4);
      put(quad.high_word, word | (upper_bits(of_upper) | upper_bits(of_lower) << 2)
                                     << quad.high_shift);
    }
  }
}

using PanelColumns = std::array<QuantizedRow, kPanelRows>;

// Packs the values of a block. `rows` has columns of which the block's first is `first`.
void pack_values(const PanelColumns& rows, int64_t first, int64_t num_slices,
                 const PackedLayout& layout, std::byte* slices) {
  for (int64_t i = 0; i < num_slices; ++i) {
    const auto at = static_cast<size_t>(first + i * kSliceColumns);
    for (size_t row = 0; row < rows.size(); ++row) {
      if (row % 16 >= 8) continue;
      pack_two_rows(&rows[row].values[at], &rows[row + 8].values[at], layout, static_cast<int>(row),
                    slices + i * layout.slice_bytes());
    }
  }
}

// Packs one panel: rows from `first_row` of the matrix on. `to` is all zeros.
void pack_panel(const QuantizedMatrix& matrix, const PackedRows& rows, int64_t first_row,
                std::byte* to) {
  const PackedLayout& layout = rows.layout;
  const auto shift = static_cast<uint8_t>(layout.value_shift());
  const int64_t block_columns = layout.block_columns();
  const int64_t num_columns = matrix.num_columns();
  const int64_t count = std::min(kPanelRows, matrix.num_rows() - first_row);
  // A scale for more columns than a block has is repeated in each of the row's blocks.
  const bool is_shared = matrix.format().group_k > block_columns;
  PanelColumns columns;  // rows beyond the last are zeros
  for (int64_t first = 0; first < num_columns; first += kQuantizedColumns) {
    const int64_t left = std::min(kQuantizedColumns, num_columns - first);
    for (int64_t row = 0; row < count; ++row) {
      QuantizedRow& from = columns[static_cast<size_t>(row)];
      from = matrix.read(first_row + row, first / kQuantizedColumns, ceil_div(left, kGroupColumns));
      for (int64_t i = 0; i < left; ++i) from.values[static_cast<size_t>(i)] += shift;
    }
    for (int64_t in_row = 0; in_row < left; in_row += block_columns) {
      std::byte* const block = to + (first + in_row) / block_columns * layout.block_bytes();
      for (int64_t row = 0; row < count; ++row) {
        write_quantized_header(columns[static_cast<size_t>(row)], is_shared ? 0 : in_row, row,
                               layout.format, block_columns / kGroupColumns, block);
      }
      const int64_t num_slices =
          ceil_div(std::min(block_columns, left - in_row), int64_t{kSliceColumns});
      pack_values(columns, in_row, num_slices, layout, block + layout.header.num_bytes);
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
