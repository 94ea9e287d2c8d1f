// Matrices of E4M3 values with scales, for tests of products.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "device_data.h"
#include "tensor/weight_source.h"

namespace quire::testing {

inline constexpr WeightScheme kPerTensor = {.values = DType::kF8E4M3,
                                            .scales = ScaleLayout::kTensor};
inline constexpr WeightScheme kPerRow = {.values = DType::kF8E4M3, .scales = ScaleLayout::kRows};
inline constexpr WeightScheme kPerBlock = {.values = DType::kF8E4M3,
                                           .scales = ScaleLayout::kBlocks,
                                           .block_rows = 128,
                                           .block_columns = 128};

// A matrix of E4M3 values with scales in host memory; the elements are near N(0, 1), times
// `magnitude`. The scales of blocks differ by powers of 4, so that a wrong one is a large error.
struct Fp8Matrix {
  Fp8Matrix(int64_t n, int64_t k, const WeightScheme& scheme_, DType scale_type_, uint32_t seed,
            float magnitude = 1.0F)
      : shape{n, k}, scheme(scheme_), scale_type(scale_type_) {
    values = encode(random_floats(n * k, seed, 64.0F), DType::kF8E4M3);
    std::vector<float> numbers =
        random_floats(scales_shape(scheme, shape).num_elements(), seed + 1000, 0.25F);
    std::mt19937 generator(seed);
    for (float& number : numbers) {
      number = magnitude * (1.0F + std::abs(number)) / 64.0F;
      const auto factor = static_cast<float>(1 << generator() % 4 * 2);
      if (scheme.scales == ScaleLayout::kBlocks) number /= factor;
    }
    scales = encode(numbers, scale_type);
  }
  WeightView view() {
    return {{values.data(), DType::kF8E4M3, shape},
            {scales.data(), scale_type, scales_shape(scheme, shape)},
            scheme};
  }

  Shape shape;
  WeightScheme scheme;
  DType scale_type;
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
};

}  // namespace quire::testing
