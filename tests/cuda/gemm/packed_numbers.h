// The numbers that packed matrices stand for, which the tests of matrices and of experts share.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/gemm/packed/packed_matrices.h"
#include "support/quantized_matrices.h"

namespace quire::testing {

// Stacked matrices [n, k].
struct PackedNumbers {
  int64_t n = 0;
  int64_t k = 0;
  std::vector<float> weights;
  std::vector<float> magnitudes;  // bounds of the terms that the weights are sums of
  std::vector<float> added;       // what the kernel for tiles adds to each scaled integer

  void add(const GgufMatrix& m) {
    append(m.n, m.k, m.values);
    magnitudes.insert(magnitudes.end(), m.magnitudes.begin(), m.magnitudes.end());
    const float shifted = cuda::packed_layout(quantized_format(m.type)).shifted;
    for (size_t i = 0; i < m.values.size(); ++i) {
      added.push_back(m.scales[i] * shifted - m.minimums[i]);
    }
  }
  // A value without its offset or zero point is at most twice as large as the largest of the row.
  void add(const IntegerMatrix& m) {
    append(m.n, m.k, m.plain);
    for (int64_t row = 0; row < m.n; ++row) {
      float largest = 0;
      for (int64_t i = 0; i < k; ++i) {
        largest = std::max(largest, std::abs(m.plain[static_cast<size_t>(row * k + i)]));
      }
      magnitudes.insert(magnitudes.end(), static_cast<size_t>(k), 2 * largest);
    }
    added.resize(weights.size());
  }

 private:
  void append(int64_t rows, int64_t columns, const std::vector<float>& values) {
    n += rows;
    k = columns;
    weights.insert(weights.end(), values.begin(), values.end());
  }
};

}  // namespace quire::testing
