// Reductions over a one-dimensional thread block of whole warps. Every thread gets the result. Each
// ends with a barrier, so that another may follow directly.
#pragma once

#include <type_traits>

#include "cuda/sample/gumbel.cuh"

namespace quire::cuda {

template <typename T, typename Combine>
__device__ T block_reduce(T x, Combine combine) {
  __shared__ T of_warp[32];
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  for (int distance = 16; distance > 0; distance /= 2) {
    x = combine(x, T::shuffle(x, distance));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
  for (int w = 1; w < num_warps; ++w) x = combine(x, of_warp[w]);
  __syncthreads();
  return x;
}

template <typename T>
struct Scalar {
  T value;
  __device__ static Scalar shuffle(Scalar x, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFU, x.value, distance)};
  }
};

__device__ inline float block_max(float x) {
  return block_reduce(Scalar<float>{x},
                      [](auto a, auto b) { return Scalar<float>{fmaxf(a.value, b.value)}; })
      .value;
}
__device__ inline double block_sum(double x) {
  return block_reduce(Scalar<double>{x},
                      [](auto a, auto b) { return Scalar<double>{a.value + b.value}; })
      .value;
}
__device__ inline int block_sum(int x) {
  return block_reduce(Scalar<int>{x}, [](auto a, auto b) { return Scalar<int>{a.value + b.value}; })
      .value;
}

struct SharedLargest {
  float logit;
  int32_t token_id, nan_id;
  __device__ static SharedLargest shuffle(SharedLargest x, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFU, x.logit, distance),
            __shfl_xor_sync(0xFFFFFFFFU, x.token_id, distance),
            __shfl_xor_sync(0xFFFFFFFFU, x.nan_id, distance)};
  }
};
__device__ inline Largest block_largest(const Largest& mine) {
  const SharedLargest all =
      block_reduce(SharedLargest{mine.logit, mine.token_id, mine.nan_id}, [](auto a, auto b) {
        Largest merged;
        merged.merge(a.logit, a.token_id, a.nan_id);
        merged.merge(b.logit, b.token_id, b.nan_id);
        return SharedLargest{merged.logit, merged.token_id, merged.nan_id};
      });
  Largest largest;
  largest.merge(all.logit, all.token_id, all.nan_id);
  return largest;
}

struct SharedWinner {
  double score;
  int32_t token_id;
  __device__ static SharedWinner shuffle(SharedWinner x, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFU, x.score, distance),
            __shfl_xor_sync(0xFFFFFFFFU, x.token_id, distance)};
  }
};
__device__ inline Winner block_winner(const Winner& mine) {
  const SharedWinner all =
      block_reduce(SharedWinner{mine.score, mine.token_id}, [](auto a, auto b) {
        const bool first = a.score > b.score || (a.score == b.score && a.token_id <= b.token_id);
        return first ? a : b;
      });
  Winner winner;
  winner.take(all.score, all.token_id);
  return winner;
}

// Calls use(q, quad) for quads [first, end) of a row. Each thread visits every blockDim.x-th quad
// in ascending order, with kInFlight loads at once.
template <int kInFlight = 4, typename Use>
__device__ __forceinline__ void for_each_quad(const LogitsRow& row, int32_t first, int32_t end,
                                              Use use) {
  const auto step = static_cast<int32_t>(blockDim.x);
  int32_t q = first + static_cast<int32_t>(threadIdx.x);
  for (; q + (kInFlight - 1) * step < end; q += kInFlight * step) {
    Quad quads[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) quads[i] = row.quad(q + i * step);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) use(q + i * step, quads[i]);
  }
  for (; q < end; q += step) use(q, row.quad(q));
}

// Gumbel-max sampling over the tokens of quads [first, end) for which `joins(logit, id)` is true.
// `change(q, quad)` sees each quad first and may modify it.
template <typename Change, typename Joins>
__device__ Winner sample_gumbel_max(const LogitsRow& row, int32_t first, int32_t end,
                                    const GumbelParams& params, Change change, Joins joins) {
  RoughGumbel rough(params);
  const auto visit = [&](auto in_flight, auto take) {
    for_each_quad<in_flight()>(row, first, end, [&](int32_t q, Quad quad) {
      change(q, quad);
      bool join[4];
      bool any = false;
#pragma unroll
      for (int j = 0; j < 4; ++j) any |= join[j] = joins(quad.x[j], q * 4 + j);
      if (!any) return;
      const uint4 bits = noise_quad(static_cast<uint32_t>(q), params.seed, params.position);
      if (join[0]) take(quad.x[0], bits.x, q * 4);
      if (join[1]) take(quad.x[1], bits.y, q * 4 + 1);
      if (join[2]) take(quad.x[2], bits.z, q * 4 + 2);
      if (join[3]) take(quad.x[3], bits.w, q * 4 + 3);
    });
  };
  visit(std::integral_constant<int, 2>(),
        [&](float x, uint32_t bits, int32_t id) { rough.take(x, bits, id); });
  const float best_low = block_max(rough.low());
  Winner winner;
  if (rough.is_close(best_low)) {  // rare: this thread visits all of its tokens again
    visit(std::integral_constant<int, 1>(),
          [&](float x, uint32_t bits, int32_t id) { winner.take(params.score(x, bits), id); });
  } else if (rough.may_win(best_low)) {
    winner.take(params.score_of(rough.logit(), rough.token_id()), rough.token_id());
  }
  return block_winner(winner);
}

}  // namespace quire::cuda
