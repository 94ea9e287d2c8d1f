#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/peer_rows.cuh"
#include "cuda/ops/peer_sums.h"

namespace quire::cuda {
namespace {

constexpr int64_t kMaxBlock = 1024;

// The 16 bytes that a rank sends, and that it adds itself.
__device__ __forceinline__ uint4 load_marked(const void* address) {
  return marked(*static_cast<const uint4*>(address));
}

// Sends the block's row of x, from its first vector on.
template <typename T, int kRanks>
__device__ void send_row(const PeerRow<kRanks>& peers, const T* row, int width) {
  constexpr int kVec = kWidestVec<T>;
  for (int i = static_cast<int>(threadIdx.x) * kVec; i < width;
       i += static_cast<int>(blockDim.x) * kVec) {
    peers.send_to_others(i * int64_t{sizeof(T)}, load_marked(row + i));
  }
}

// The sum of the ranks' vectors at `own`, which is this rank's.
template <typename T, int kRanks>
__device__ void receive_sum(const PeerRow<kRanks>& peers, int64_t idx, const T* own,
                            float (&sum)[kWidestVec<T>]) {
  uint4 parts[1][kRanks];
  peers.receive_from_others(idx * int64_t{sizeof(T)}, load_marked(own), parts);
  peers.template sum<T>(parts[0], sum);
}

// One thread block per row.
template <typename T, int kRanks>
__global__ void __launch_bounds__(kMaxBlock)
    sum_rows_kernel(const __grid_constant__ PeerInboxes inboxes, int width, T* x) {
  constexpr int kVec = kWidestVec<T>;
  trigger_dependent_launch();
  wait_for_previous_kernel();
  T* const row = x + int64_t{blockIdx.x} * width;
  const PeerRow<kRanks> peers(inboxes, blockIdx.x);
  send_row(peers, row, width);
  peers.refill(threadIdx.x, blockDim.x);
  for (int i = static_cast<int>(threadIdx.x) * kVec; i < width;
       i += static_cast<int>(blockDim.x) * kVec) {
    float sum[kVec];
    receive_sum(peers, i, row + i, sum);
    Vec<T, kVec> value;
#pragma unroll
    for (int j = 0; j < kVec; ++j) value.v[j] = from_float<T>(sum[j]);
    store_vec(row + i, value);
  }
  __syncthreads();
  if (threadIdx.x == 0) peers.end(width * int64_t{sizeof(T)});
}

template <typename T>
struct SumAndNorm {
  T* residual;
  const T* delta;
  const float* weight;
  float eps;
  int width;
  T* out;
};

// One thread block per row. A thread's first vector stays in registers.
template <typename T, int kRanks>
__global__ void __launch_bounds__(kMaxBlock)
    sum_rows_and_norm_kernel(const __grid_constant__ PeerInboxes inboxes,
                             const SumAndNorm<T> args) {
  constexpr int kVec = kWidestVec<T>;
  trigger_dependent_launch();
  const int first = static_cast<int>(threadIdx.x) * kVec;
  const int step = static_cast<int>(blockDim.x) * kVec;
  float first_weights[kVec] = {};
  if (first < args.width) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) first_weights[j] = args.weight[first + j];
  }
  wait_for_previous_kernel();
  const int64_t offset = int64_t{blockIdx.x} * args.width;
  T* const residual = args.residual + offset;
  const T* const delta = args.delta + offset;
  const PeerRow<kRanks> peers(inboxes, blockIdx.x);
  send_row(peers, delta, args.width);
  peers.refill(threadIdx.x, blockDim.x);
  Vec<T, kVec> kept;
  float squares = 0;
  for (int i = first; i < args.width; i += step) {
    Vec<T, kVec> value = load_vec<kVec>(residual + i);
    float sum[kVec];
    receive_sum(peers, i, delta + i, sum);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      value.v[j] = from_float<T>(to_float(value.v[j]) + sum[j]);
      squares += to_float(value.v[j]) * to_float(value.v[j]);
    }
    store_vec(residual + i, value);
    if (i == first) kept = value;
  }
  const float mean = block_sum(squares) / static_cast<float>(args.width);
  if (threadIdx.x == 0) peers.end(args.width * int64_t{sizeof(T)});
  const float scale = 1.0F / sqrtf(mean + args.eps);
  for (int i = first; i < args.width; i += step) {
    Vec<T, kVec> value = i == first ? kept : load_vec<kVec>(residual + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float w = i == first ? first_weights[j] : args.weight[i + j];
      value.v[j] = from_float<T>(to_float(value.v[j]) * scale * w);
    }
    store_vec(args.out + offset + i, value);
  }
}

LaunchShape row_blocks(const LaunchContext& context, const TensorView& x) {
  const int64_t num_vectors = static_cast<int64_t>(x.rows(0, 1).num_bytes() / sizeof(uint4));
  return context.shape(x.shape[0], std::min(round_up(num_vectors, int64_t{32}), kMaxBlock));
}

template <typename Body>
void with_kernel(DType dtype, int num_ranks, const Body& body) {
  with_float_type(
      dtype, [&](auto type) { with_max_ranks(num_ranks, [&](auto ranks) { body(type, ranks); }); });
}

}  // namespace

void run_sum_rows(const LaunchContext& context, const PeerInboxes& inboxes, const TensorView& x) {
  with_kernel(x.dtype, inboxes.num_ranks, [&](auto type, auto ranks) {
    using T = typename decltype(type)::type;
    QUIRE_LAUNCH(*context.stream, (sum_rows_kernel<T, ranks.value>), row_blocks(context, x),
                 inboxes, static_cast<int>(x.shape[1]), x.as<T>());
  });
}

void run_sum_rows_and_norm(const LaunchContext& context, const PeerInboxes& inboxes,
                           const ResidualNorm& norm, const TensorView& out) {
  with_kernel(out.dtype, inboxes.num_ranks, [&](auto type, auto ranks) {
    using T = typename decltype(type)::type;
    const SumAndNorm<T> args = {norm.residual.as<T>(),
                                norm.delta.as<const T>(),
                                norm.weight,
                                norm.eps,
                                static_cast<int>(out.shape[1]),
                                out.as<T>()};
    QUIRE_LAUNCH(*context.stream, (sum_rows_and_norm_kernel<T, ranks.value>),
                 row_blocks(context, norm.delta), inboxes, args);
  });
}

Status load_sum_kernels(int num_ranks) {
  cudaError_t error = cudaSuccess;
  const auto load = [&](auto* kernel) {
    cudaFuncAttributes attributes;
    if (error != cudaSuccess) return;
    error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    with_kernel(dtype, num_ranks, [&](auto type, auto ranks) {
      using T = typename decltype(type)::type;
      load(&sum_rows_kernel<T, ranks.value>);
      load(&sum_rows_and_norm_kernel<T, ranks.value>);
    });
  }
  return to_status(error, "cudaFuncGetAttributes");
}

}  // namespace quire::cuda
