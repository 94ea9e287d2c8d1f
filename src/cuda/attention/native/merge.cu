#include "cuda/attention/native/instances.h"
#include "cuda/attention/native/plan.h"
#include "cuda/attention/native/rows.cuh"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"

namespace quire::cuda::native {
namespace {

constexpr int kThreads = 128;
constexpr int kLoadsAtOnce = 8;

// One thread block per row: (token of the phase, head). Every warp computes the splits' weights for
// itself, two splits per lane; then each thread computes one column.
template <typename Q>
__global__ void merge_splits(const Params p) {
  static_assert(kMaxSplits == 64);
  wait_for_previous_kernel();
  const int head = static_cast<int>(blockIdx.x) % p.num_heads;
  const int token = p.first_token + static_cast<int>(blockIdx.x) / p.num_heads;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t base = partial_index(p, token, head, 0);
  float weights[2];
  float sums[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int split = i * 32 + lane;
    weights[i] = split < p.num_splits ? p.partial_max[base + split] : -INFINITY;
    sums[i] = split < p.num_splits ? p.partial_sum[base + split] : 0.0F;
  }
  float max = fmaxf(weights[0], weights[1]);
  for (int distance = 16; distance > 0; distance /= 2) {
    max = fmaxf(max, __shfl_xor_sync(0xFFFFFFFFU, max, distance));
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    // A split without positions wrote no row: its weight is 0, and its memory is not read.
    weights[i] = weights[i] == -INFINITY ? 0.0F : exp2f(weights[i] - max);
  }
  const float factor = end_row(p, head, max, warp_sum(weights[0] * sums[0] + weights[1] * sums[1]));
  const int64_t row = int64_t{token} * p.num_heads + head;
  for (int first = 0; first < p.head_dim_v; first += kThreads) {
    const int d = first + static_cast<int>(threadIdx.x);
    const bool wanted = d < p.head_dim_v;
    const float* from = p.partial_out + base * p.head_dim_v + d;
    float x = 0.0F;
#pragma unroll kLoadsAtOnce
    for (int split = 0; split < p.num_splits; ++split) {
      const float weight =
          __shfl_sync(0xFFFFFFFFU, split < 32 ? weights[0] : weights[1], split % 32);
      const float of_split = wanted && weight > 0.0F ? from[int64_t{split} * p.head_dim_v] : 0.0F;
      x += weight * of_split;
    }
    if (wanted) static_cast<Q*>(p.out)[row * p.head_dim_v + d] = from_float<Q>(x * factor);
  }
}

}  // namespace

void launch_merge(CudaStream& stream, const Params& p) {
  const LaunchShape shape{.grid = static_cast<unsigned>(p.num_tokens * p.num_heads),
                          .block = kThreads,
                          .overlap_start = true};
  if (p.q_dtype == DType::kF16) {
    QUIRE_LAUNCH(stream, merge_splits<__half>, shape, p);
  } else {
    QUIRE_LAUNCH(stream, merge_splits<__nv_bfloat16>, shape, p);
  }
}

}  // namespace quire::cuda::native
