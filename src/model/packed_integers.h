// Matrices of 4 and 8-bit integers, which quantization tools pack into numbers of 32 bits, and
// their conversion to one form: a WeightView with one byte per value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

class ThreadPool;

// The storage of the integers of a matrix [rows, columns]. A word is an I32 with 32 / bits
// integers, the first in its lowest bits. Stored integers are unsigned: 2^(bits - 1) is added to
// them.
enum class Packing : uint8_t {
  kNone,  // one I8 per value
  // AutoAWQ's "gemm": values [columns, rows / 8] and zero points [groups, rows / 8] in words along
  // the rows, in the order 0, 2, 4, 6, 1, 3, 5, 7; scales [groups, rows].
  kAwq,
  // AutoGPTQ's: values in words along the columns, [columns / per word, rows]; zero points in words
  // along the rows, [groups, rows / per word], each stored minus one; scales [groups, rows].
  kGptq,
  kGptqV2,  // GPTQModel's: as kGptq, with the zero points as they are
  // compressed-tensors' "pack-quantized": values in words along the columns, [rows, columns / per
  // word]; zero points in words along the rows, [rows / per word, groups]; scales [rows, groups].
  kCompressed,
};

// The suffixes of a matrix's tensors after its name. Empty: the packing has none.
struct PackedNames {
  std::string_view values;
  std::string_view scales;
  std::string_view zeros;        // if the scheme has zero points
  std::string_view groups = {};  // the group of each column; absent: the columns are in order
  std::string_view shape = {};   // the shape of the matrix, in an optional tensor
};
PackedNames packed_names(Packing packing);

// The axis of a matrix's rows in its values, scales and zero points, and the rows per element.
struct PackedRows {
  int axis = 0;
  int64_t per_value = 1;
  int64_t per_zero_point = 1;  // times the rows that share a zero point
};
PackedRows packed_rows(Packing packing, const WeightScheme& scheme);

// The shapes in which a matrix of this shape is stored.
struct PackedShapes {
  Shape values;
  Shape scales;
  Shape zeros;
};
// Fails if the matrix does not consist of whole groups and words.
Result<PackedShapes> packed_shapes(Packing packing, const WeightScheme& scheme,
                                   const Shape& matrix);

// The order that sorts the columns by `groups`, their groups, and is stable. Empty: they are in
// order. Fails if a group's number is out of range, or if a group does not have `group_size`
// columns.
Result<std::vector<int32_t>> column_order(std::span<const int64_t> groups, int64_t group_size);

// The tensors of a matrix, of packed_shapes().
struct StoredIntegers {
  TensorView values;  // I32
  TensorView scales;  // F32, F16 or BF16
  TensorView zeros;   // I32; only if the scheme has zero points
};

// Converts a matrix whose packing is not kNone. If `order` is not empty, the columns of the result
// are in this order. The result refers to `copies` and to the tensors. `threads` share the rows.
Result<WeightView> unpack_integers(Packing packing, const StoredIntegers& packed,
                                   const WeightScheme& scheme, const Shape& shape,
                                   std::span<const int32_t> order, std::vector<Tensor>& copies,
                                   ThreadPool& threads);

}  // namespace quire
