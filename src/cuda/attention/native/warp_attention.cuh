// One warp's attention: 16 rows over tiles of positions, with online softmax.
#pragma once

#include "cuda/attention/native/tile.cuh"

namespace quire::cuda::native {

// The accumulators of 16 rows. A thread holds rows lane.row (index 0) and lane.row + 8 (1) in two
// columns of each column tile: o[j][0..1] belong to the first row, o[j][2..3] to the second.
template <class C>
struct WarpRows {
  float o[C::kColumnTiles][4] = {};
  float max[2] = {-INFINITY, -INFINITY};  // log2 units
  float sum[2] = {0.0F, 0.0F};            // this thread's share until sum_up()
  Span visible[2];

  // Adds kTokens positions from `first` on. `query(i)` gives the QueryPiece of a thread's piece i.
  template <int kTokens, class Query>
  __device__ void attend(const LogitScale& scale, Query query, uint32_t k_tile, uint32_t v_tile,
                         int first, Lane lane) {
    float s[kTokens / 8][4] = {};
#pragma unroll
    for (int i = 0; i < C::kPieces; ++i) {
      const QueryPiece<C> q = query(i);
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
        multiply_keys<C>(s[t], q,
                         load_shared(k_tile + swizzled<C::kRowPieces>(t * 8 + lane.row,
                                                                      C::piece(i, lane.quad))));
      }
    }
    mask_and_scale<kTokens>(s, scale, first, lane);
    weigh<kTokens>(s);
#pragma unroll
    for (int t = 0; t < kTokens / 16; ++t) {
      using P = typename C::P;
      const uint32_t p[4] = {pack<P>(s[2 * t][0], s[2 * t][1]), pack<P>(s[2 * t][2], s[2 * t][3]),
                             pack<P>(s[2 * t + 1][0], s[2 * t + 1][1]),
                             pack<P>(s[2 * t + 1][2], s[2 * t + 1][3])};
      multiply_values<C>(o, p, v_tile, t * 16, lane);
    }
  }

  // Reduces `sum` over the four threads that share a row; each gets the row's sum.
  __device__ void sum_up() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(0xFFFFFFFFU, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xFFFFFFFFU, sum[r], 2);
    }
  }

 private:
  template <int kTokens>
  __device__ void mask_and_scale(float (&s)[kTokens / 8][4], const LogitScale& scale, int first,
                                 Lane lane) const {
    if (scale.softcap > 0.0F) {
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[t][i] = scale.softcap * tanhf(s[t][i] * scale.inner);
      }
    } else {
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[t][i] *= scale.inner;
      }
    }
    if (first >= max_of(visible[0].first, visible[1].first) &&
        first + kTokens <= min_of(visible[0].end, visible[1].end)) {
      return;
    }
#pragma unroll
    for (int t = 0; t < kTokens / 8; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int position = first + t * 8 + lane.quad * 2 + i % 2;
        const Span span = visible[i / 2];
        if (position < span.first || position >= span.end) s[t][i] = -INFINITY;
      }
    }
  }

  // Converts logits to weights, and rescales the accumulators to the new maxima.
  template <int kTokens>
  __device__ void weigh(float (&s)[kTokens / 8][4]) {
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = max[r];
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
        top = fmaxf(top, fmaxf(s[t][2 * r], s[t][2 * r + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 2));
      const float origin = top == -INFINITY ? 0.0F : top;  // no positions yet: all weights are 0
      shrink[r] = fast_exp2(max[r] - origin);
      max[r] = top;
      sum[r] *= shrink[r];
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
        s[t][2 * r] = fast_exp2(s[t][2 * r] - origin);
        s[t][2 * r + 1] = fast_exp2(s[t][2 * r + 1] - origin);
        sum[r] += s[t][2 * r] + s[t][2 * r + 1];
      }
    }
    if (!__any_sync(0xFFFFFFFFU, shrink[0] != 1.0F || shrink[1] != 1.0F)) return;
#pragma unroll
    for (int j = 0; j < C::kColumnTiles; ++j) {
      o[j][0] *= shrink[0];
      o[j][1] *= shrink[0];
      o[j][2] *= shrink[1];
      o[j][3] *= shrink[1];
    }
  }

  __device__ static int max_of(int a, int b) {
    return a > b ? a : b;
  }
  __device__ static int min_of(int a, int b) {
    return a < b ? a : b;
  }
};

}  // namespace quire::cuda::native
