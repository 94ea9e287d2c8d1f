// The positions that a row attends to, the part of them that a split processes, and the scaling of
// a row's result.
#pragma once

#include <cuda_runtime.h>

#include "cuda/attention/native/kernels.h"
#include "cuda/device/elements.cuh"

namespace quire::cuda::native {

inline constexpr float kLog2E = 1.4426950408889634F;

struct Span {
  int first = 0;
  int end = 0;
};

// One request's current lengths.
struct Request {
  int first_token;
  int q_len;
  int kv_len;
  const int32_t* pages;
};

__device__ inline Request read_request(const Params& p, int req) {
  const int first = p.query_start[req];
  return {first, p.query_start[req + 1] - first, p.seq_lens[req],
          p.block_table + req * p.max_pages};
}

// The query token of a packed row. Divisions are slow, and often there is only one token.
__device__ inline int token_of_row(const Params& p, const Request& req, int row) {
  return req.q_len == 1 ? 0 : row / p.group;
}

// Sums over the lanes of one row, whose indices differ only in the bits with values kFirst to kEnd
// / 2. Each of these lanes gets the sum.
template <int kFirst, int kEnd>
__device__ inline float sum_of_row(float x) {
#pragma unroll
  for (int distance = kFirst; distance < kEnd; distance *= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, distance);
  }
  return x;
}
template <int kFirst, int kEnd>
__device__ inline float max_of_row(float x) {
#pragma unroll
  for (int distance = kFirst; distance < kEnd; distance *= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFU, x, distance));
  }
  return x;
}

__device__ inline Span visible_span(const Params& p, const Request& req, int query) {
  if (req.kv_len == 0) return {0, 0};
  if (!p.causal) return {0, req.kv_len};
  const int end = max(0, req.kv_len - req.q_len + query + 1);
  if (p.window == 0) return {0, end};
  if (p.chunked) return {max(0, end - 1) / p.window * p.window, end};
  return {max(0, end - p.window), end};
}

// The part of `span` that split `split` processes. Parts begin at multiples of 16 positions; a part
// is empty if the request is too short for num_splits parts.
__device__ inline Span split_span(Span span, int split, int num_splits, int unit) {
  const int begin = span.first & ~15;
  // With ceil_div() nvcc allocates the kernels' registers differently.
  const int num_units = (span.end - begin + unit - 1) / unit;
  const int units = (num_units + num_splits - 1) / num_splits;
  const int first = begin + split * units * unit;
  return {max(span.first, first), min(span.end, first + units * unit)};
}

// Converts dot products to logits in log2 units: inner * x, or its soft cap.
struct LogitScale {
  float inner;
  float softcap;  // in log2 units; 0: off

  __device__ explicit LogitScale(const Params& p) {
    const float scale = p.scale * (p.k_scale != nullptr ? *p.k_scale : 1.0F);
    inner = p.softcap > 0.0F ? scale / p.softcap : scale * kLog2E;
    softcap = p.softcap * kLog2E;
  }
  __device__ float operator()(float dot) const {
    const float x = dot * inner;
    return softcap > 0.0F ? softcap * tanhf(x) : x;
  }
};

// The factor that converts a row's accumulators to its output, including V's scale; `max` is in
// log2 units. For a row without positions the factor is 0, even with a sink.
__device__ inline float output_factor(const Params& p, int head, float max, float sum) {
  if (max == -INFINITY) return 0.0F;
  float top = max;
  if (p.sinks != nullptr) {
    const float sink = p.sinks[head] * kLog2E;
    top = fmaxf(max, sink);
    sum = sum * exp2f(max - top) + exp2f(sink - top);
  }
  const float v_scale = p.v_scale != nullptr ? *p.v_scale : 1.0F;
  return exp2f(max - top) / sum * v_scale;
}

// The index of a split's partial row of a token. Tokens are numbered within the step, partial rows
// from the phase's first token. kRows8 and kRows64 number theirs by cluster (merge.cuh).
__device__ inline int64_t partial_index(const Params& p, int token, int head, int split) {
  return (int64_t{token - p.first_token} * p.num_heads + head) * p.num_splits + split;
}

// Returns the factor by which the caller multiplies a row's accumulators before it writes them:
// output_factor() if one thread block has processed all positions. A partial row has factor 1, and
// its maximum and sum are stored for the merge, at this index.
__device__ inline float finish_row_or_store_partial(const Params& p, int head, int64_t partial_idx,
                                                    float max, float sum, bool is_partial,
                                                    bool is_writer) {
  if (is_partial) {
    if (is_writer) {
      p.partial_max[partial_idx] = max;
      p.partial_sum[partial_idx] = sum;
    }
    return 1.0F;
  }
  return output_factor(p, head, max, sum);
}

// Merges the partial results of a row: holds the weights of splits `lane` and `lane` + 32 in each
// lane, and the factor that converts the weighted sum to the output. The whole warp calls this. A
// split without positions has weight 0. launch_rows16 and launch_tile do not write its row, so
// merge_splits must not read it; kRows8 and kRows64 write zeros.
struct SplitWeights {
  float weights[2];
  float factor;

  // index_of(split) returns the index of a split's partial row.
  template <class IndexOf>
  __device__ SplitWeights(const Params& p, int head, int num_parts, IndexOf index_of) {
    static_assert(kMaxSplits == 64);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float sums[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int split = i * 32 + lane;
      const int64_t index = index_of(split);
      weights[i] = split < num_parts ? __ldcg(p.partial_max + index) : -INFINITY;
      sums[i] = split < num_parts ? __ldcg(p.partial_sum + index) : 0.0F;
    }
    float max = fmaxf(weights[0], weights[1]);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      max = fmaxf(max, __shfl_xor_sync(0xFFFFFFFFU, max, distance));
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      weights[i] = weights[i] == -INFINITY ? 0.0F : exp2f(weights[i] - max);
    }
    factor = output_factor(p, head, max, warp_sum(weights[0] * sums[0] + weights[1] * sums[1]));
  }
  // The whole warp calls this.
  __device__ float of(int split) const {
    return __shfl_sync(0xFFFFFFFFU, split < 32 ? weights[0] : weights[1], split % 32);
  }
};

}  // namespace quire::cuda::native
