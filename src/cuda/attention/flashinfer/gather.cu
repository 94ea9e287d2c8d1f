#include <type_traits>

#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"

namespace quire::cuda::flashinfer_backend {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;  // elements at a time, 16 bytes of the copy

// Elements of the copy as bits: 16-bit elements are copied whatever their type.
using Bits = Vec<uint16_t, kPerThread>;

__device__ __forceinline__ Bits load_elements(const uint16_t* from) {
  return load_vec<kPerThread>(from);
}
__device__ __forceinline__ Bits load_elements(const __nv_fp8_e4m3* from) {
  const auto pairs = load_vec<kPerThread / 2>(reinterpret_cast<const uint16_t*>(from));
  Bits out;
#pragma unroll
  for (int i = 0; i < kPerThread / 2; ++i) {
    const uint32_t pair = widen<__nv_bfloat16>(pairs.v[i]);
    out.v[2 * i] = static_cast<uint16_t>(pair);
    out.v[2 * i + 1] = static_cast<uint16_t>(pair >> 16);
  }
  return out;
}

// Grid: one thread block per tile of kFa3TilePositions, KV head, and keys or values.
template <typename Cache, int kHeadDim>
__global__ void __launch_bounds__(kThreads) gather_kernel(const GatherCall call) {
  constexpr int kThreadsPerRow = kHeadDim / kPerThread;
  constexpr int kRows = kThreads / kThreadsPerRow;  // at a time
  static_assert(kFa3TilePositions % kRows == 0);
  wait_for_previous_kernel();
  const int tile_start = static_cast<int>(blockIdx.x) * kFa3TilePositions;
  const int head = blockIdx.y;
  const bool values = blockIdx.z == 1;
  const int req = last_starting_by(0, call.num_reqs, tile_start,
                                   [start = call.scratch_start](int i) { return start[i]; });
  const int first_position = tile_start - call.scratch_start[req];
  const int kv_len = call.seq_lens[req];
  // The plan follows upper bounds; FA3 reads no tile behind the true length.
  if (first_position >= kv_len) return;

  const int64_t* strides = values ? call.v_strides : call.k_strides;
  const int column = threadIdx.x % kThreadsPerRow * kPerThread;
  const int first_row = threadIdx.x / kThreadsPerRow;
  const auto* from =
      static_cast<const Cache*>(values ? call.v : call.k) + head * strides[1] + column;
  auto* out = static_cast<uint16_t*>(values ? call.v_out : call.k_out) +
              (int64_t{head} * call.scratch_tokens + tile_start) * kHeadDim + column;
  const int32_t* pages = call.block_table + call.page_start[req];
#pragma unroll
  for (int row = first_row; row < first_row + kFa3TilePositions; row += kRows) {
    const int position = first_position + row;
    Bits elements = {};
    if (position < kv_len) {
      const int page = position / call.page_size;
      const int offset = position - page * call.page_size;
      elements = load_elements(from + pages[page] * strides[0] + offset * strides[2]);
    }
    store_vec(out + int64_t{row} * kHeadDim, elements);
  }
}

using GatherKernel = void (*)(GatherCall);

GatherKernel find_gather(DType cache, int head_dim) {
  if (cache == DType::kF8E4M3) {
    return head_dim == 64 ? gather_kernel<__nv_fp8_e4m3, 64> : gather_kernel<__nv_fp8_e4m3, 128>;
  }
  return head_dim == 64 ? gather_kernel<uint16_t, 64> : gather_kernel<uint16_t, 128>;
}

}  // namespace

void launch_gather(const GatherCall& call, DType cache, int head_dim, CudaStream& stream) {
  const LaunchShape shape = {
      .grid = dim3(static_cast<unsigned>(call.num_tokens / kFa3TilePositions),
                   static_cast<unsigned>(call.num_kv_heads), 2),
      .block = kThreads,
      .overlap_start = true};
  QUIRE_LAUNCH(stream, find_gather(cache, head_dim), shape, call);
}

cudaError_t load_gather(DType cache, int head_dim) {
  cudaFuncAttributes attributes = {};
  return cudaFuncGetAttributes(&attributes,
                               reinterpret_cast<const void*>(find_gather(cache, head_dim)));
}

}  // namespace quire::cuda::flashinfer_backend
