// The orders of rows in which llama.cpp's converter stores matrices of attention.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quire::testing {

// Within each head, rows p * (rows / 2) + i become rows 2 * i + p.
inline void pair_rows(std::vector<float>& values, int64_t num_rows, int64_t num_heads) {
  const std::vector<float> before = values;
  const int64_t columns = static_cast<int64_t>(values.size()) / num_rows;
  const int64_t half = num_rows / num_heads / 2;
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t in_head = row % (2 * half);
    const int64_t from = row - in_head + in_head % 2 * half + in_head / 2;
    std::copy_n(before.begin() + from * columns, columns, values.begin() + row * columns);
  }
}

// The matrix of keys and values of latent attention, which has key_rows and then value_rows by
// head, as the two tensors of a file.
struct LatentParts {
  std::vector<float> keys;    // [num_heads, columns, key_rows]
  std::vector<float> values;  // [num_heads, value_rows, columns]
};

inline LatentParts split_latent(const std::vector<float>& matrix, int64_t num_heads,
                                int64_t key_rows, int64_t value_rows, int64_t columns) {
  LatentParts parts;
  for (int64_t head = 0; head < num_heads; ++head) {
    const auto begin = matrix.begin() + head * (key_rows + value_rows) * columns;
    for (int64_t i = 0; i < columns * key_rows; ++i) {
      parts.keys.push_back(begin[i % key_rows * columns + i / key_rows]);
    }
    const auto first_value = begin + key_rows * columns;
    parts.values.insert(parts.values.end(), first_value, first_value + value_rows * columns);
  }
  return parts;
}

}  // namespace quire::testing
