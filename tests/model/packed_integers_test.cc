#include "model/packed_integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WeightScheme scheme_of(int bits, int64_t group_size, bool has_zeros = true) {
  WeightScheme scheme = {.values = DType::kI8,
                         .scales = ScaleLayout::kBlocks,
                         .block_rows = 1,
                         .block_columns = group_size};
  scheme.bits = bits;
  scheme.has_zeros = has_zeros;
  return scheme;
}

// A matrix in words, and what it is unpacked to.
struct Unpacked {
  std::vector<int> values;
  std::vector<float> scales;
  std::vector<int> zeros;
  std::vector<int> order;
};

Unpacked unpack(Packing packing, const WeightScheme& scheme, const Shape& shape,
                std::vector<uint32_t> words, std::vector<float> scales, std::vector<uint32_t> zeros,
                const std::vector<int32_t>& order = {}) {
  const PackedShapes shapes = packed_shapes(packing, scheme, shape).value();
  EXPECT_EQ(shapes.values.num_elements(), std::ssize(words));
  EXPECT_EQ(shapes.scales.num_elements(), std::ssize(scales));
  StoredIntegers packed = {
      {words.data(), DType::kI32, shapes.values}, {scales.data(), DType::kF32, shapes.scales}, {}};
  if (scheme.has_zeros) {
    EXPECT_EQ(shapes.zeros.num_elements(), std::ssize(zeros));
    packed.zeros = {zeros.data(), DType::kI32, shapes.zeros};
  }
  std::vector<Tensor> copies;
  ThreadPool threads(2);
  const WeightView view =
      unpack_integers(packing, packed, scheme, shape, order, copies, threads).value();
  const int64_t num_scales = scales_shape(scheme, shape).num_elements();
  EXPECT_EQ(view.scales.shape, scales_shape(scheme, shape));
  const auto* const values = view.values.as<int8_t>();
  const auto* const view_scales = view.scales.as<float>();
  Unpacked out = {
      {values, values + shape.num_elements()}, {view_scales, view_scales + num_scales}, {}, {}};
  if (view.zeros.data != nullptr) {
    EXPECT_EQ(view.zeros.shape, view.scales.shape);
    out.zeros.assign(view.zeros.as<int8_t>(), view.zeros.as<int8_t>() + num_scales);
  }
  if (view.order.data != nullptr) {
    out.order.assign(view.order.as<int32_t>(), view.order.as<int32_t>() + shape[1]);
  }
  return out;
}

// Row r of one column is stored in bits 4 * place of its word, with 8 added.
TEST(PackedIntegers, AwqInterleavesTheRowsOfAWord) {
  const Unpacked matrix = unpack(Packing::kAwq, scheme_of(4, 2), {8, 2}, {0x76543210, 0xFEDCBA98},
                                 {1, 2, 3, 4, 5, 6, 7, 8}, {0x76543210});
  EXPECT_THAT(matrix.values, ElementsAre(-8, 0, -4, 4, -7, 1, -3, 5, -6, 2, -2, 6, -5, 3, -1, 7));
  EXPECT_THAT(matrix.zeros, ElementsAre(-8, -4, -7, -3, -6, -2, -5, -1));
  EXPECT_THAT(matrix.scales, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(PackedIntegers, GptqPacksColumnsAndZeroPointsOfRows) {
  // Two groups of 8 columns; the first word of a row has the columns 0 to 7.
  std::vector<uint32_t> words(16);
  for (uint32_t row = 0; row < 8; ++row) {
    words[row] = 0x76543210 ^ row;            // changes column 0
    words[8 + row] = 0xFEDCBA98 ^ row << 28;  // changes column 15
  }
  std::vector<float> scales(16);
  std::iota(scales.begin(), scales.end(), 0.0F);
  const auto run = [&](Packing packing) {
    return unpack(packing, scheme_of(4, 8), {8, 16}, words, scales, {0x76543210, 0xFEDCBA98});
  };
  const Unpacked matrix = run(Packing::kGptqV2);
  for (int row = 0; row < 8; ++row) {
    const auto* const values = matrix.values.data() + row * 16;
    EXPECT_EQ(values[0], row - 8);
    for (int column = 1; column < 15; ++column) EXPECT_EQ(values[column], column - 8);
    EXPECT_EQ(values[15], (15 ^ row) - 8);
    EXPECT_EQ(matrix.zeros[static_cast<size_t>(2 * row)], row - 8);
    EXPECT_EQ(matrix.zeros[static_cast<size_t>(2 * row + 1)], row);
    EXPECT_EQ(matrix.scales[static_cast<size_t>(2 * row + 1)], static_cast<float>(8 + row));
  }
  // Stored zero points are one less, and 15 stands for 0.
  const Unpacked old = run(Packing::kGptq);
  EXPECT_EQ(old.values, matrix.values);
  for (size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(old.zeros[2 * row], matrix.zeros[2 * row] + 1);
    EXPECT_EQ(old.zeros[2 * row + 1], row == 7 ? -8 : matrix.zeros[2 * row + 1] + 1);
  }
}

TEST(PackedIntegers, EightBitsAreFourToAWord) {
  const Unpacked matrix =
      unpack(Packing::kGptq, scheme_of(8, 4), {4, 4},
             {0x03020100, 0x83828180, 0xFFFEFDFC, 0x7F7E7D7C}, {1, 2, 3, 4}, {0xFF7F0100});
  EXPECT_THAT(matrix.values,
              ElementsAre(-128, -127, -126, -125, 0, 1, 2, 3, 124, 125, 126, 127, -4, -3, -2, -1));
  EXPECT_THAT(matrix.zeros, ElementsAre(-127, -126, 0, -128));
}

// The last word of a row, and of a column of zero points, may be incomplete.
TEST(PackedIntegers, CompressedTensorsPacksColumnsAndZeroPointsAlongRows) {
  const Unpacked matrix =
      unpack(Packing::kCompressed, scheme_of(4, 1 << 20), {3, 10},
             {0x76543210, 0x98, 0xFEDCBA98, 0x10, 0x88888888, 0x88}, {1, 2, 3}, {0x0F80});
  EXPECT_THAT(std::vector<int>(matrix.values.begin(), matrix.values.begin() + 10),
              ElementsAre(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1));
  EXPECT_THAT(std::vector<int>(matrix.values.begin() + 10, matrix.values.begin() + 20),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, -8, -7));
  EXPECT_THAT(matrix.zeros, ElementsAre(-8, 0, 7));
  EXPECT_THAT(matrix.scales, ElementsAre(1, 2, 3));
}

TEST(PackedIntegers, ColumnsAreSortedByGroup) {
  const std::vector<int64_t> groups = {1, 0, 0, 1, 0, 1, 1, 0};
  const std::vector<int32_t> order = column_order(groups, 4).value();
  EXPECT_THAT(order, ElementsAre(1, 2, 4, 7, 0, 3, 5, 6));
  const Unpacked matrix =
      unpack(Packing::kCompressed, scheme_of(4, 4, false), {1, 8}, {0x76543210}, {1, 2}, {}, order);
  EXPECT_THAT(matrix.values, ElementsAre(-7, -6, -4, -1, -8, -5, -3, -2));
  EXPECT_THAT(matrix.order, ElementsAre(1, 2, 4, 7, 0, 3, 5, 6));
  EXPECT_THAT(matrix.zeros, IsEmpty());
}

TEST(PackedIntegers, ColumnsInOrderHaveNone) {
  EXPECT_THAT(column_order(std::vector<int64_t>{0, 0, 1, 1}, 2).value(), IsEmpty());
  EXPECT_THAT(column_order(std::vector<int64_t>{0, 0, 0}, 128).value(), IsEmpty());
}

TEST(PackedIntegers, GroupsThatDoNotDivideTheColumnsAreNamed) {
  const auto error_of = [](const std::vector<int64_t>& groups, int64_t size) {
    return column_order(groups, size).status().message();
  };
  EXPECT_THAT(error_of({0, 0, 2, 1}, 2), HasSubstr("got group 2 of column 2, expected 0 to 1"));
  EXPECT_THAT(error_of({-1, 0}, 2), HasSubstr("got group -1 of column 0, expected 0 to 0"));
  EXPECT_THAT(error_of({0, 0, 0, 1}, 2), HasSubstr("got 3 columns of group 0, expected 2"));
  EXPECT_THAT(error_of({0, 0, 0, 0}, 2), HasSubstr("got 4 columns of group 0, expected 2"));
}

TEST(PackedIntegers, MatricesThatAreNoWholeWordsOrGroupsAreNamed) {
  const auto error_of = [](Packing packing, int bits, int64_t group_size, const Shape& shape) {
    return packed_shapes(packing, scheme_of(bits, group_size), shape).status().message();
  };
  EXPECT_THAT(error_of(Packing::kAwq, 4, 32, {8, 48}),
              HasSubstr("got 48 columns, expected a multiple of the 32 columns of a group"));
  EXPECT_THAT(error_of(Packing::kAwq, 4, 32, {12, 64}),
              HasSubstr("got 12 rows, expected a multiple of the 8 rows of a word"));
  EXPECT_THAT(error_of(Packing::kGptq, 8, 1 << 20, {8, 30}),
              HasSubstr("got 30 columns, expected a multiple of the 4 columns of a word"));
  EXPECT_THAT(error_of(Packing::kCompressed, 4, 1 << 20, {3, 30}), IsEmpty());
}

}  // namespace
}  // namespace quire::testing
