// Multiplies a slice of packed weights by up to 8 rows of x. The kernels for few rows share this
// code.
#pragma once

#include "base/check.h"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/packed/kernels/packed_values.cuh"

namespace quire::cuda::packed {

// The B operands of a slice: the lane's four values of a row of x for each step.
struct SliceOfX {
  uint2 steps[kSteps];
};

// Adds the products of a slice to the lane's sums.
// group_shift: log2 of the columns of a group, or of a block if the group is larger. kGroupSteps:
// the number of steps whose products are summed up before they are scaled; all are in one group.
template <typename T, Values kValues, int kGroupSteps, bool kHasMinimums>
__device__ __forceinline__ void multiply_slice(const PackedLayout& layout, int group_shift,
                                               const unsigned char* block, int slice,
                                               const SliceOfX& x, int lane,
                                               float (&sums)[kTiles][4]) {
  constexpr int kBits = bits_of(kValues);
  constexpr int kTileBytes = packed_tile_bytes(kBits);
  const unsigned char* const values = block + layout.header.num_bytes + slice * 2 * kTileBytes;
  TileWords<kBits> words[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    words[tile] = load_tile<kBits>(values + tile * kTileBytes, lane);
  }
  constexpr int kGroups = kSteps / kGroupSteps;
  // Lane i has the scales of row i.
  GroupScale of_row[kGroups];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int column = slice * kSliceColumns + group * kGroupSteps * 16;
    of_row[group] = group_scale<kValues == Values::kE2m1, kHasMinimums, (kGroupSteps < kSteps)>(
        layout, block, lane, column >> group_shift);
  }
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    float part[kTiles][4] = {};
    float sums_of_x[4] = {};
#pragma unroll
    for (int step = group * kGroupSteps; step < (group + 1) * kGroupSteps; ++step) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        uint32_t a[4];
        unpack_step<T, kValues>(words[tile], step, a);
        mma<T>(part[tile], a, x.steps[step].x, x.steps[step].y);
      }
      if constexpr (kHasMinimums) {
        const uint32_t ones[4] = {kOnes<T>, kOnes<T>, kOnes<T>, kOnes<T>};
        mma<T>(sums_of_x, ones, x.steps[step].x, x.steps[step].y);
      }
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = tile * kPackedTileRows + half * 8 + lane / 4;
        const float scale = __shfl_sync(kAllLanes, of_row[group].scale, row);
        float minimum = 0;
        if constexpr (kHasMinimums) minimum = __shfl_sync(kAllLanes, of_row[group].minimum, row);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& sum = sums[tile][2 * half + i];
          sum = fmaf(scale, part[tile][2 * half + i], sum);
          if constexpr (kHasMinimums) sum = fmaf(-minimum, sums_of_x[i], sum);
        }
      }
    }
  }
}

// Calls body(kValues, kGroupSteps, kHasMinimums). Formats of 8 bits have no groups of 16 columns.
// Formats of 6 bits have no groups of more than 32 columns, and groups of 16 only without minimums
// (Q6_K).
template <typename Body>
void with_groups(const PackedLayout& layout, const Body& body) {
  using std::integral_constant;
  const int bits = layout.format.value_bits;
  const int group = layout.format.group_k;
  const auto with_minimums = [&](auto values, auto group_steps) {
    with_bool(layout.has_minimums(),
              [&](auto has_minimums) { body(values, group_steps, has_minimums); });
  };
  if (layout.is_e2m1()) {
    return body(ValuesConstant<Values::kE2m1>(), integral_constant<int, 2>(), std::false_type());
  }
  if (bits == 4) {
    constexpr ValuesConstant<Values::kInt4> four;
    if (group == 16) return with_minimums(four, integral_constant<int, 1>());
    if (group == 32) return with_minimums(four, integral_constant<int, 2>());
    return with_minimums(four, integral_constant<int, 4>());
  }
  if (bits == 6) {
    constexpr ValuesConstant<Values::kInt6> six;
    if (group > 16) return with_minimums(six, integral_constant<int, 2>());
    QUIRE_CHECK(!layout.has_minimums(), "[ops] 6 bits in groups of 16 have no minimums");
    return body(six, integral_constant<int, 1>(), std::false_type());
  }
  constexpr ValuesConstant<Values::kInt8> eight;
  QUIRE_CHECK(group > 16, "[ops] 8 bits have no groups of 16");
  if (group == 32) return with_minimums(eight, integral_constant<int, 2>());
  with_minimums(eight, integral_constant<int, 4>());
}

}  // namespace quire::cuda::packed
