// How a weight matrix is stored: its values, and the scales that multiply them.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace quire {

enum class ScaleLayout : uint8_t { kNone, kTensor, kRows, kBlocks };

struct WeightScheme {
  DType values = DType::kF32;
  ScaleLayout scales = ScaleLayout::kNone;
  int64_t block_rows = 0;  // kBlocks: the rows and columns that share one scale
  int64_t block_columns = 0;

  friend bool operator==(const WeightScheme&, const WeightScheme&) = default;
};

// Returns for example "fp8_e4m3 with a scale per block of 128 x 128".
std::string describe(const WeightScheme& scheme);

// The block of `matrix` [rows, columns] that shares one scale; not for kNone.
Shape scale_block(const WeightScheme& scheme, const Shape& matrix);
// The shape of the scales of `matrix`; the last block along either axis may be incomplete.
Shape scales_shape(const WeightScheme& scheme, const Shape& matrix);

// A matrix [rows, columns] in memory; its elements are values * scales.
struct WeightView {
  WeightView() = default;
  // Values without scales.
  WeightView(const TensorView& plain) : values(plain) { scheme.values = plain.dtype; }
  WeightView(const TensorView& of_values, const TensorView& of_scales, const WeightScheme& scheme_)
      : values(of_values), scales(of_scales), scheme(scheme_) {}

  TensorView values;
  TensorView scales;  // F32, F16 or BF16 of scales_shape(); data null: none
  WeightScheme scheme;
};

}  // namespace quire
