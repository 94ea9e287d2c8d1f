#include "tensor/weight_scheme.h"

#include <gtest/gtest.h>

namespace quire::testing {
namespace {

TEST(WeightScheme, ScalesCoverTheMatrix) {
  const Shape matrix = {300, 257};
  WeightScheme scheme = {DType::kF8E4M3, ScaleLayout::kTensor};
  EXPECT_EQ(scales_shape(scheme, matrix), (Shape{1, 1}));
  EXPECT_EQ(describe(scheme), "fp8_e4m3 with a scale per tensor");
  scheme.scales = ScaleLayout::kRows;
  EXPECT_EQ(scales_shape(scheme, matrix), (Shape{300, 1}));
  EXPECT_EQ(describe(scheme), "fp8_e4m3 with a scale per row");
  scheme = {DType::kF8E4M3, ScaleLayout::kBlocks, 128, 64};
  EXPECT_EQ(scales_shape(scheme, matrix), (Shape{3, 5}));
  EXPECT_EQ(scale_block(scheme, matrix), (Shape{128, 64}));
  EXPECT_EQ(describe(scheme), "fp8_e4m3 with a scale per block of 128 x 64");
  EXPECT_EQ(describe({.values = DType::kBF16}), "bf16 without scales");
}

TEST(WeightScheme, PlainValuesHaveTheirOwnTypeAndNoScales) {
  uint16_t values[6] = {};
  const WeightView view = TensorView{values, DType::kF16, {2, 3}};
  EXPECT_EQ(view.scheme, WeightScheme{.values = DType::kF16});
  EXPECT_EQ(view.scales.data, nullptr);
}

}  // namespace
}  // namespace quire::testing
