#include "cuda/attention/native/instances.h"
#include "cuda/attention/native/rows.cuh"
#include "cuda/base/launch.h"
#include "cuda/device/convert.cuh"
#include "cuda/device/overlap.cuh"

namespace quire::cuda::native {
namespace {

constexpr int kThreads = 128;

// A block is one row: (token of the phase, head).
template <typename Q>
__global__ void merge_splits(const Params p) {
  wait_for_previous_kernel();
  const int head = static_cast<int>(blockIdx.x) % p.num_heads;
  const int token = p.first_token + static_cast<int>(blockIdx.x) / p.num_heads;
  const int64_t base = partial_index(p, token, head, 0);
  float max = -INFINITY;
  for (int s = 0; s < p.num_splits; ++s) max = fmaxf(max, p.partial_max[base + s]);
  float sum = 0.0F;
  for (int s = 0; s < p.num_splits; ++s) {
    const float of_split = p.partial_max[base + s];
    if (of_split != -INFINITY) sum += exp2f(of_split - max) * p.partial_sum[base + s];
  }
  const RowEnd end = end_row(p, head, max, sum);
  const int64_t row = int64_t{token} * p.num_heads + head;
  if (threadIdx.x == 0 && p.lse != nullptr) p.lse[row] = end.lse;
  for (int d = static_cast<int>(threadIdx.x); d < p.head_dim_v; d += kThreads) {
    float x = 0.0F;
    for (int s = 0; s < p.num_splits; ++s) {
      const float of_split = p.partial_max[base + s];
      if (of_split == -INFINITY) continue;  // it wrote no row
      x += exp2f(of_split - max) * p.partial_out[(base + s) * p.head_dim_v + d];
    }
    static_cast<Q*>(p.out)[row * p.head_dim_v + d] = from_float<Q>(x * end.factor);
  }
}

}  // namespace

void launch_merge(CudaStream& stream, const Params& p, bool overlap) {
  const LaunchShape shape{.grid = static_cast<unsigned>(p.num_tokens * p.num_heads),
                          .block = kThreads,
                          .overlap_start = overlap};
  if (p.q_dtype == DType::kF16) {
    QUIRE_LAUNCH(stream, merge_splits<__half>, shape, p);
  } else {
    QUIRE_LAUNCH(stream, merge_splits<__nv_bfloat16>, shape, p);
  }
}

}  // namespace quire::cuda::native
