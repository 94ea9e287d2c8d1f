#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"

namespace quire::cuda::flashinfer_backend {
namespace {

constexpr int kWarpSize = 32;
constexpr int kWarps = 4;

// The lambda copies the pointer: with a reference to `call`, nvcc allocates the kernel's registers
// differently.
__device__ int request_of(const MergeCall& call, int token) {
  return last_starting_by(0, call.num_reqs, token,
                          [start = call.query_start](int req) { return start[req]; });
}

// Grid: one thread block per token and head. Each warp weights every kWarps-th chunk, with kPerLane
// neighbouring elements per lane; then the first warp adds the warps' sums.
template <typename T, int kPerLane>
__global__ void __launch_bounds__(kWarps* kWarpSize) merge_kernel(const MergeCall call) {
  __shared__ Vec<float, kPerLane> warp_acc[kWarps][kWarpSize];
  __shared__ float warp_sum[kWarps];
  wait_for_previous_kernel();
  const int head = blockIdx.y;
  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int token = call.first_token + blockIdx.x;
  const int req = request_of(call, token);
  const int kv_len = call.seq_lens[req];
  const int chunks =
      static_cast<int>(num_chunks(kv_len, call.window, call.tile_rows, *call.chunk_tokens));
  const int64_t first_row =
      call.partial_start[req] + int64_t{token - call.query_start[req]} * chunks;
  const float* lse = call.partial_lse + first_row * call.num_heads + head;

  float max = -INFINITY;
  for (int c = lane; c < chunks; c += kWarpSize) max = fmaxf(max, lse[c * call.num_heads]);
  for (int d = kWarpSize / 2; d > 0; d /= 2) max = fmaxf(max, __shfl_xor_sync(~0U, max, d));

  float sum = 0.0F;
  Vec<float, kPerLane> acc = {};
  const int64_t row_size = int64_t{call.num_heads} * call.head_dim;
  const T* in = static_cast<const T*>(call.partials) + first_row * row_size + head * call.head_dim +
                lane * kPerLane;
#pragma unroll 4
  for (int c = warp; c < chunks; c += kWarps) {
    const float weight = exp2f(lse[c * call.num_heads] - max);
    const auto partial = load_vec<kPerLane>(in + c * row_size);
    sum += weight;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) acc.v[i] += weight * to_float(partial.v[i]);
  }
  warp_acc[warp][lane] = acc;
  if (lane == 0) warp_sum[warp] = sum;
  __syncthreads();
  if (warp != 0) return;
#pragma unroll
  for (int w = 1; w < kWarps; ++w) {
    sum += warp_sum[w];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) acc.v[i] += warp_acc[w][lane].v[i];
  }
  Vec<T, kPerLane> out;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    out.v[i] = from_float<T>(kv_len == 0 ? 0.0F : acc.v[i] / sum);
  }
  store_vec(static_cast<T*>(call.out) + token * row_size + head * call.head_dim + lane * kPerLane,
            out);
}

template <typename T>
void launch_merge_of(const MergeCall& call, CudaStream& stream) {
  const LaunchShape shape = {
      .grid = dim3(static_cast<unsigned>(call.num_tokens), static_cast<unsigned>(call.num_heads)),
      .block = kWarps * kWarpSize,
      .overlap_start = true};
  switch (call.head_dim / kWarpSize) {
    case 2:
      return QUIRE_LAUNCH(stream, (merge_kernel<T, 2>), shape, call);
    case 4:
      return QUIRE_LAUNCH(stream, (merge_kernel<T, 4>), shape, call);
    default:
      return QUIRE_LAUNCH(stream, (merge_kernel<T, 8>), shape, call);
  }
}

}  // namespace

void launch_merge(const MergeCall& call, DType dtype, CudaStream& stream) {
  if (dtype == DType::kBF16) return launch_merge_of<__nv_bfloat16>(call, stream);
  launch_merge_of<__half>(call, stream);
}

}  // namespace quire::cuda::flashinfer_backend
