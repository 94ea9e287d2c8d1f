// Symmetric integers of 4 bits, with a scale per group of a row's weights.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace quire {

inline constexpr float kInt4Least = -8;
inline constexpr float kInt4Most = 7;
inline constexpr float kInt4HalfRange = 7.5F;  // (kInt4Most - kInt4Least) / 2

// Stores a number in F32, F16 or BF16 and returns its value there.
float store_number(float value, DType dtype, std::byte* out);

// The scale of a group, rounded to `dtype`: the largest magnitude becomes kInt4HalfRange. It is 1
// for a group of zeros, and otherwise at least the smallest positive number of `dtype`.
float int4_scale(std::span<const float> group, DType dtype, std::byte* out);

// The scale of a group whose columns have different importance. Tries scales from 34/32 to 21/32
// times the scale of the largest magnitude, in steps of 1/32, and takes the scale with the least
// sum of importance * (error of a weight)^2. A smaller scale is finer for most weights, and clamps
// the largest. An empty `importance`: int4_scale().
float best_int4_scale(std::span<const float> group, std::span<const float> importance, DType dtype,
                      std::byte* out);

// Writes the integer nearest to each number divided by the scale, ties to even. `out` may be
// `group`.
void round_to_int4(std::span<const float> group, float scale, float* out);

}  // namespace quire
