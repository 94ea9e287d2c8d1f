// Reads the quantized matrices of a LinearSource row by row. GGUF blocks and integers with scales
// become the same form, QuantizedRow, which devices pack into a format of their own.
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

// A device's format for this type. Values of 2 and 3 bits are widened to 4 bits, of 5 bits to 6.
QuantizedFormat quantized_format(const GgufBlockType& type);

// A device's format for integers of this scheme, with scales of type `scales`. nullopt: the number
// of columns that share a scale is not a multiple of 16. A scale is kept once per gcd(this number,
// 256) columns, or per 256 columns if it is the scale of a whole row.
std::optional<QuantizedFormat> quantized_format(const WeightScheme& scheme, DType scales,
                                                const Shape& matrix);

inline constexpr int64_t kQuantizedColumns = 256;  // upper bound of the columns of one read()

// kQuantizedColumns adjacent columns of one row. Columns beyond the matrix are 0.
struct QuantizedRow {
  // The bits of each group's scale and minimum; with kBlockBytes, the block's, in element 0.
  std::array<uint32_t, kQuantizedColumns / 16> scales = {};
  std::array<uint16_t, kQuantizedColumns / 32> minimums = {};
  std::array<int8_t, kQuantizedColumns / 16> group_scales = {};
  std::array<uint8_t, kQuantizedColumns / 16> group_minimums = {};
  std::array<uint8_t, kQuantizedColumns / 16> zeros = {};  // by group
  std::array<uint8_t, kQuantizedColumns> values = {};      // unsigned: signed integers are shifted
};

// Writes the scales, minimums and zero points of row `row` of a panel into the header of a block of
// 32 * groups columns. The first scale belongs to column `first_column` of `from`.
void write_quantized_header(const QuantizedRow& from, int64_t first_column, int64_t row,
                            const QuantizedFormat& format, int64_t groups, std::byte* header);

// One matrix of a source, which must outlive it. Integers must have a quantized_format().
class QuantizedMatrix {
 public:
  explicit QuantizedMatrix(const BlockMatrix& blocks);
  explicit QuantizedMatrix(const WeightView& integers);

  const QuantizedFormat& format() const { return format_; }
  int64_t num_rows() const { return shape_[0]; }
  int64_t num_columns() const { return shape_[1]; }
  // Reads 32 * groups columns, at most kQuantizedColumns, from column kQuantizedColumns * idx on.
  // The matrix may end within the last 32.
  QuantizedRow read(int64_t row, int64_t idx, int64_t groups) const;

 private:
  const BlockMatrix* blocks_ = nullptr;
  const WeightView* integers_ = nullptr;
  Shape shape_;
  QuantizedFormat format_;
};

// Whether the source's numbers are quantized blocks or integers with scales.
bool is_quantized(const LinearSource& source);
// The matrices of a quantized source. Fails with kInvalidArgument if shapes, biases or the orders
// of columns are inconsistent, and with kUnimplemented if integers have no format.
Result<std::vector<QuantizedMatrix>> quantized_matrices(const LinearSource& source);
// Column i of all the matrices is column order[i] of the Linear; empty: columns are in order.
std::span<const int32_t> column_order_of(const LinearSource& source);

}  // namespace quire
