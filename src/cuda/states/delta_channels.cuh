// The convolution of one token in one channel, whose inputs before it are in a page.
#pragma once

#include "cuda/ops/activation.cuh"
#include "cuda/states/delta_args.cuh"

namespace quire::cuda {

inline constexpr int kPastInputs = kDeltaKernel - 1;

// A sequence's token and its pages.
struct DecodeToken {
  int row = 0;                    // of the step
  int position = -1;              // -1: a request that pads a graph's batch
  const float* before = nullptr;  // the page with the state before the token; null: it is the first
  float* page = nullptr;          // the page of the state after the token; null: it is not kept
};

template <typename T>
__device__ DecodeToken decode_token(const DeltaArgs<T>& args, int seq) {
  const StatePages& states = args.states;
  DecodeToken token = {.row = states.query_start[seq], .position = states.seq_lens[seq] - 1};
  const int32_t* const pages = states.page_table + seq * states.max_pages;
  const int32_t page = pages[max(token.position, 0) / states.block_size];
  if (token.position > 0) {
    token.before = page_of(states, pages[(token.position - 1) / states.block_size]);
  }
  if (token.position >= 0 && page != 0 && states.kv_slots[token.row] >= 0) {
    token.page = page_of(states, page);
  }
  return token;
}

struct DecodeChannel {
  int64_t index = 0;
  float past[kPastInputs] = {};  // the newest inputs before the token, the oldest first
  float in = 0;

  template <typename T>
  __device__ void load_past(const DeltaArgs<T>& args, const DecodeToken& token, int64_t channel) {
    index = channel;
#pragma unroll
    for (int i = 0; i < kPastInputs; ++i) {
      const int position = token.position - kPastInputs + i;
      if (position < 0) continue;
      past[i] = token.before[position % args.page.num_rows * args.shape.num_channels() + index];
    }
  }

  // Reads the input of the token, whose row of the step or of a page is `x`.
  template <typename T, typename Row>
  __device__ float convolve(const DeltaArgs<T>& args, const Row* x) {
    in = to_float(x[index]);
    const float* const w = args.conv + index;
    const int64_t num_channels = args.shape.num_channels();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPastInputs; ++i) sum = fmaf(w[i * num_channels], past[i], sum);
    return silu<T>(fmaf(w[kPastInputs * num_channels], in, sum));
  }

  // Writes the rows of the page after the token. The page has room for them beside all rows that
  // other thread blocks may still read (DeltaNetPage::num_rows).
  template <typename T>
  __device__ void write(const DeltaArgs<T>& args, const DecodeToken& token) const {
    const auto at = [&](int position) -> float& {
      return token.page[position % args.page.num_rows * args.shape.num_channels() + index];
    };
    at(token.position) = in;
    if (token.page == token.before) return;
#pragma unroll
    for (int i = 0; i < kPastInputs; ++i) {
      const int position = token.position - kPastInputs + i;
      if (position >= 0) at(position) = past[i];
    }
  }
};

__device__ inline float sum_of(const float (&parts)[4]) {
  const float4 x = *reinterpret_cast<const float4*>(parts);
  return (x.x + x.y) + (x.z + x.w);
}

// |q|^2, |k|^2 and q . k of a token before the norms, as four warps' parts of the sums.
using TokenNorms = float[3][4];

// Adds the part of a warp. Each lane has one number of q and one of k.
__device__ inline void write_norms(float q, float k, TokenNorms& norms) {
  const float parts[3] = {warp_sum(q * q), warp_sum(k * k), warp_sum(q * k)};
  if (threadIdx.x % 32 != 0) return;
#pragma unroll
  for (int i = 0; i < 3; ++i) norms[i][threadIdx.x / 32 % 4] = parts[i];
}

// The factors that normalize the queries and keys of a token.
struct DecodeScales {
  float q;
  float k;
  float products;  // q . k, of the scaled q and k

  __device__ explicit DecodeScales(const TokenNorms& norms)
      : q(rsqrtf(sum_of(norms[0]) + 1e-6F) * rsqrtf(static_cast<float>(kDeltaHeadDim))),
        k(rsqrtf(sum_of(norms[1]) + 1e-6F)),
        products(sum_of(norms[2]) * q * k) {}
};

// d and the output of one column.
struct DecodedColumn {
  float delta;
  float out;
};

// sums: S^T k and S^T q of the column, as kWarps warps' parts of the sums.
template <int kWarps, int kColumns>
__device__ DecodedColumn decode_column(const float2 (&sums)[kWarps][kColumns], int column,
                                       float value, float decay, float beta,
                                       const DecodeScales& scales) {
  float2 sum = {0, 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    sum.x += sums[w][column].x;
    sum.y += sums[w][column].y;
  }
  const float delta = beta * (value - decay * sum.x);
  return {delta, fmaf(scales.products, delta, decay * sum.y)};
}

// S' = decay * S + key * delta^T in four columns of a row.
__device__ inline float4 next_state(const float4& state, float decay, float key,
                                    const float4& delta) {
  return {fmaf(key, delta.x, decay * state.x), fmaf(key, delta.y, decay * state.y),
          fmaf(key, delta.z, decay * state.z), fmaf(key, delta.w, decay * state.w)};
}

}  // namespace quire::cuda
