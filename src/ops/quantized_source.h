// Reads the matrices of a LinearSource that a device keeps as integers, in one form for quantized
// blocks and for integers with scales.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ops/quantized_format.h"
#include "ops/weight_store.h"

namespace quire {

// The format of blocks of this type. Values of 2 and 3 bits take 4 bits, those of 5 bits 6.
QuantizedFormat quantized_format(const GgufBlockType& type);

// The format of integers with scales of this type; absent: there is none, because the columns that
// share a scale are not a multiple of 16. A scale of a larger group is kept once per
// gcd(group, 256) columns.
std::optional<QuantizedFormat> quantized_format(const WeightScheme& scheme, DType scales,
                                                const Shape& matrix);

inline constexpr int64_t kQuantizedColumns = 256;  // columns per read()

// One row's part of kQuantizedColumns columns.
struct QuantizedRow {
  // The bits of one scale per group or, with kBlockBytes, one per block; and of minimums.
  std::array<uint32_t, kQuantizedColumns / 16> scales = {};
  std::array<uint16_t, kQuantizedColumns / 32> minimums = {};
  std::array<int8_t, kQuantizedColumns / 16> group_scales = {};
  std::array<uint8_t, kQuantizedColumns / 16> group_minimums = {};
  std::array<uint8_t, kQuantizedColumns / 16> zeros = {};
  std::array<uint8_t, kQuantizedColumns> values = {};
};

// Writes the row's part of a block's header. `row`: in the panel. The block has `groups` groups of
// 32 columns, which begin at column `first_column` of `from`.
void write_quantized_header(const QuantizedRow& from, int64_t first_column, int64_t row,
                            const QuantizedFormat& format, int64_t groups, std::byte* header);

// One matrix of a source. It refers to the source.
class QuantizedMatrix {
 public:
  explicit QuantizedMatrix(const BlockMatrix& blocks);
  explicit QuantizedMatrix(const WeightView& integers);

  const QuantizedFormat& format() const { return format_; }
  int64_t num_rows() const { return shape_[0]; }
  int64_t num_columns() const { return shape_[1]; }
  // Reads `groups` groups of 32 columns, at most kQuantizedColumns, from column
  // kQuantizedColumns * idx on. The last group may be incomplete.
  QuantizedRow read(int64_t row, int64_t idx, int64_t groups) const;

 private:
  const BlockMatrix* blocks_ = nullptr;
  const WeightView* integers_ = nullptr;
  Shape shape_;
  QuantizedFormat format_;
};

// Whether the source's numbers are quantized blocks or integers with scales.
bool is_quantized(const LinearSource& source);
// The matrices of such a source. Fails with kInvalidArgument if shapes, biases or the orders of
// columns are inconsistent, and with kUnimplemented if integers have no format.
Result<std::vector<QuantizedMatrix>> quantized_matrices(const LinearSource& source);
// Column i of all the matrices is column order[i] of the Linear; empty: columns are in order.
std::span<const int32_t> column_order_of(const LinearSource& source);

}  // namespace quire
