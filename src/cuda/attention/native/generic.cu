// Attention without tensor cores, in F32, for any mix of dtypes and any alignment. One thread block
// per row: its warps process the positions in turn, a few at a time, and combine their results in
// shared memory. Also merges the partial results of launch_rows16 and launch_tile.
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/rows.cuh"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"

namespace quire::cuda::native {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kAtOnce = 4;  // positions per iteration, so that their loads overlap

// A lane's share of a vector of `dim` elements: every 32nd element.
template <int kLaneDims>
struct LaneVec {
  float x[kLaneDims];
};

template <int kLaneDims, typename T>
__device__ LaneVec<kLaneDims> load_lane(const T* from, int dim, int lane) {
  LaneVec<kLaneDims> vec;
#pragma unroll
  for (int i = 0; i < kLaneDims; ++i) {
    const int d = i * 32 + lane;
    vec.x[i] = d < dim ? to_float(from[d]) : 0.0F;
  }
  return vec;
}

template <int kLaneDims>
__device__ LaneVec<kLaneDims> load_query(const Params& p, int64_t row, int lane) {
  const int64_t at = row * p.head_dim;
  if (p.q_dtype == DType::kF16) {
    return load_lane<kLaneDims>(static_cast<const __half*>(p.q) + at, p.head_dim, lane);
  }
  if (p.q_dtype == DType::kBF16) {
    return load_lane<kLaneDims>(static_cast<const __nv_bfloat16*>(p.q) + at, p.head_dim, lane);
  }
  return load_lane<kLaneDims>(static_cast<const float*>(p.q) + at, p.head_dim, lane);
}

__device__ void store_output(const Params& p, int64_t at, float x) {
  if (p.q_dtype == DType::kF16) {
    static_cast<__half*>(p.out)[at] = from_float<__half>(x);
  } else if (p.q_dtype == DType::kBF16) {
    static_cast<__nv_bfloat16*>(p.out)[at] = from_float<__nv_bfloat16>(x);
  } else {
    static_cast<float*>(p.out)[at] = x;
  }
}

__device__ int request_of_token(const Params& p, int token) {
  return last_starting_by(p.first_req, p.num_reqs, token,
                          [&](int req) { return p.query_start[req]; });
}

// kWidth: the largest head dimension, a multiple of 32.
template <typename Kv, int kWidth>
__global__ __launch_bounds__(kThreads) void generic_kernel(const Params p) {
  constexpr int kLaneDims = kWidth / 32;
  __shared__ float of_warp[kWarps][kWidth];
  __shared__ float max_of_warp[kWarps];
  __shared__ float sum_of_warp[kWarps];
  const int token = p.first_token + static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Request req = read_request(p, request_of_token(p, token));
  const Span span = visible_span(p, req, token - req.first_token);
  const int64_t row = int64_t{token} * p.num_heads + head;
  const int page_mask = (1 << p.page_shift) - 1;
  const Kv* keys = static_cast<const Kv*>(p.k) + head / p.group * p.head_stride_k;
  const Kv* values = static_cast<const Kv*>(p.v) + head / p.group * p.head_stride_v;
  const LogitScale scale(p);
  const LaneVec q = load_query<kLaneDims>(p, row, lane);

  float max = -INFINITY;
  float sum = 0.0F;
  LaneVec<kLaneDims> o = {};
  for (int first = span.first + warp * kAtOnce; first < span.end; first += kWarps * kAtOnce) {
    float logits[kAtOnce];
    int64_t value_at[kAtOnce];
    float top = max;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      logits[i] = -INFINITY;
      value_at[i] = -1;
      if (first + i >= span.end) continue;
      const int64_t page = req.pages[(first + i) >> p.page_shift];
      const int64_t offset = (first + i) & page_mask;
      const LaneVec k = load_lane<kLaneDims>(
          keys + page * p.page_stride_k + offset * p.token_stride_k, p.head_dim, lane);
      value_at[i] = page * p.page_stride_v + offset * p.token_stride_v;
      float dot = 0.0F;
#pragma unroll
      for (int d = 0; d < kLaneDims; ++d) dot += q.x[d] * k.x[d];
      logits[i] = scale(warp_sum(dot));
      top = fmaxf(top, logits[i]);
    }
    const float shrink = exp2f(max - top);
    max = top;
    sum *= shrink;
#pragma unroll
    for (int d = 0; d < kLaneDims; ++d) o.x[d] *= shrink;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (value_at[i] < 0) continue;
      const float weight = exp2f(logits[i] - top);
      const LaneVec v = load_lane<kLaneDims>(values + value_at[i], p.head_dim_v, lane);
      sum += weight;
#pragma unroll
      for (int d = 0; d < kLaneDims; ++d) o.x[d] += weight * v.x[d];
    }
  }

#pragma unroll
  for (int d = 0; d < kLaneDims; ++d) of_warp[warp][d * 32 + lane] = o.x[d];
  if (lane == 0) {
    max_of_warp[warp] = max;
    sum_of_warp[warp] = sum;
  }
  __syncthreads();
  float top = -INFINITY;
  for (int w = 0; w < kWarps; ++w) top = fmaxf(top, max_of_warp[w]);
  float total = 0.0F;
  float weights[kWarps];
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    weights[w] = top == -INFINITY ? 0.0F : exp2f(max_of_warp[w] - top);
    total += weights[w] * sum_of_warp[w];
  }
  const float factor = output_factor(p, head, top, total);
  for (int d = static_cast<int>(threadIdx.x); d < p.head_dim_v; d += kThreads) {
    float x = 0.0F;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) x += weights[w] * of_warp[w][d];
    store_output(p, row * p.head_dim_v + d, x * factor);
  }
}

template <typename Kv>
void launch_kernel(CudaStream& stream, const Params& p) {
  const dim3 grid(static_cast<unsigned>(p.num_tokens), static_cast<unsigned>(p.num_heads));
  const LaunchShape shape = {.grid = grid, .block = kThreads};
  if (p.head_dim <= kMaxTileDim && p.head_dim_v <= kMaxTileDim) {
    QUIRE_LAUNCH(stream, (generic_kernel<Kv, kMaxTileDim>), shape, p);
  } else {
    QUIRE_LAUNCH(stream, (generic_kernel<Kv, kMaxDim>), shape, p);
  }
}

constexpr int kMergeThreads = 128;
constexpr int kLoadsAtOnce = 8;

// One thread block per row: (token of the phase, head). Each warp computes the weights of all
// splits; then each thread computes one column.
template <typename Q>
__global__ void merge_splits(const Params p) {
  wait_for_previous_kernel();
  const int head = static_cast<int>(blockIdx.x) % p.num_heads;
  const int token = p.first_token + static_cast<int>(blockIdx.x) / p.num_heads;
  const int64_t first_split = partial_index(p, token, head, 0);
  const SplitWeights weights(p, head, p.num_splits, [&](int split) { return first_split + split; });
  const int64_t row = int64_t{token} * p.num_heads + head;
  for (int first = 0; first < p.head_dim_v; first += kMergeThreads) {
    const int d = first + static_cast<int>(threadIdx.x);
    const bool wanted = d < p.head_dim_v;
    const float* from = p.partial_out + first_split * p.head_dim_v + d;
    float x = 0.0F;
#pragma unroll kLoadsAtOnce
    for (int split = 0; split < p.num_splits; ++split) {
      const float weight = weights.of(split);
      const float of_split = wanted && weight > 0.0F ? from[int64_t{split} * p.head_dim_v] : 0.0F;
      x += weight * of_split;
    }
    if (wanted) static_cast<Q*>(p.out)[row * p.head_dim_v + d] = from_float<Q>(x * weights.factor);
  }
}

}  // namespace

void launch_generic(CudaStream& stream, const Params& p, DType kv) {
  if (kv == DType::kF8E4M3) return launch_kernel<__nv_fp8_e4m3>(stream, p);
  if (kv == DType::kBF16) return launch_kernel<__nv_bfloat16>(stream, p);
  if (kv == DType::kF16) return launch_kernel<__half>(stream, p);
  return launch_kernel<float>(stream, p);
}

void launch_merge(CudaStream& stream, const Params& p) {
  const LaunchShape shape{.grid = static_cast<unsigned>(p.num_tokens * p.num_heads),
                          .block = kMergeThreads,
                          .overlap_start = true};
  if (p.q_dtype == DType::kF16) {
    QUIRE_LAUNCH(stream, merge_splits<__half>, shape, p);
  } else {
    QUIRE_LAUNCH(stream, merge_splits<__nv_bfloat16>, shape, p);
  }
}

}  // namespace quire::cuda::native
