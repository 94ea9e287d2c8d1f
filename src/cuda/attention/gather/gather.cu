#include "cuda/attention/gather/gather.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"

namespace quire::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;  // elements at a time, 16 bytes of the copy

// Grid: one thread block per kGatherTile positions, KV head, and keys or values. kHeadDim is 0 for
// any head_dim. 16-bit elements of any type are copied as bits.
template <typename Cache, int kHeadDim>
__global__ void __launch_bounds__(kThreads) gather_kernel(const GatherCall call) {
  const int head_dim = kHeadDim > 0 ? kHeadDim : call.head_dim;
  const int threads_per_row = head_dim / kPerThread;
  const int rows_at_once = kThreads / threads_per_row;
  wait_for_previous_kernel();
  const int block_start = static_cast<int>(blockIdx.x) * kGatherTile;
  const int head = blockIdx.y;
  const bool values = blockIdx.z == 1;
  const int req = last_starting_by(0, call.num_reqs, block_start,
                                   [start = call.scratch_start](int i) { return start[i]; });
  const int first_position = block_start - call.scratch_start[req];
  const int kv_len = call.seq_lens[req];
  if (first_position >= round_up(kv_len, call.tile)) return;

  const KvCacheView& kv = call.kv;
  const int64_t page_stride = values ? kv.page_stride_v : kv.page_stride_k;
  const int64_t head_stride = values ? kv.head_stride_v : kv.head_stride_k;
  const int64_t token_stride = values ? kv.token_stride_v : kv.token_stride_k;
  const float* scales = values ? kv.v_scale : kv.k_scale;
  const float scale = call.apply_scales && scales != nullptr ? *scales : 1.0F;
  const int column = static_cast<int>(threadIdx.x) % threads_per_row * kPerThread;
  const int first_row = static_cast<int>(threadIdx.x) / threads_per_row;
  const auto* from = static_cast<const Cache*>(values ? kv.v : kv.k) + head * head_stride + column;
  auto* out = static_cast<Widened<Cache>*>(values ? call.v : call.k) + head * call.head_stride +
              block_start * call.token_stride + column;
  const int32_t* pages = call.block_table + req * call.max_pages;
  if (kHeadDim == 0 && first_row == rows_at_once) return;  // the last threads may be too few
#pragma unroll
  for (int i = 0; i < kGatherTile; i += rows_at_once) {
    const int row = first_row + i;
    if (kHeadDim == 0 && row >= kGatherTile) return;
    const int position = first_position + row;
    Vec<Widened<Cache>, kPerThread> elements = {};
    if (position < kv_len) {
      const int page = position / call.page_size;
      const int offset = position - page * call.page_size;
      elements =
          load_widened<kPerThread>(from + pages[page] * page_stride + offset * token_stride, scale);
    }
    store_vec(out + row * call.token_stride, elements);
  }
}

using GatherKernel = void (*)(GatherCall);

template <typename Cache>
GatherKernel find_gather_of(int head_dim) {
  if (head_dim == 64) return gather_kernel<Cache, 64>;
  return head_dim == 128 ? gather_kernel<Cache, 128> : gather_kernel<Cache, 0>;
}

GatherKernel find_gather(DType cache, int head_dim) {
  return cache == DType::kF8E4M3 ? find_gather_of<__nv_fp8_e4m3>(head_dim)
                                 : find_gather_of<uint16_t>(head_dim);
}

}  // namespace

GatherCall gather_call(const AttentionShape& shape, const KvCacheView& kv,
                       const AttentionBatch& batch, const PhaseRange& range,
                       const GatherGroup& group, const GatherScratch& scratch) {
  const int64_t first_req = int64_t{range.first_req} + group.first_req;
  const int64_t row_size = int64_t{shape.num_kv_heads} * shape.head_dim;
  return {.kv = kv,
          .apply_scales = scratch.apply_scales,
          .k = scratch.memory,
          .v = scratch.memory + scratch_bytes(shape, scratch.num_tokens) / 2,
          .head_stride = scratch.by_head ? scratch.num_tokens * shape.head_dim : shape.head_dim,
          .token_stride = scratch.by_head ? shape.head_dim : row_size,
          .seq_lens = batch.seq_lens + first_req,
          .block_table = batch.block_table + first_req * batch.max_pages,
          .max_pages = batch.max_pages,
          .scratch_start = scratch.starts + group.first_req,
          .num_reqs = group.num_reqs,
          .num_tokens = group.num_tokens,
          .tile = scratch.tile,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .page_size = shape.page_size};
}

void launch_gather(const GatherCall& call, CudaStream& stream) {
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(call.num_tokens / kGatherTile),
                                          static_cast<unsigned>(call.num_kv_heads), 2),
                             .block = kThreads,
                             .overlap_start = true};
  QUIRE_LAUNCH(stream, find_gather(call.kv.dtype, call.head_dim), shape, call);
}

Status load_gather(DType cache, int head_dim) {
  cudaFuncAttributes attributes = {};
  QUIRE_CUDA_RETURN_IF_ERROR(cudaFuncGetAttributes(
      &attributes, reinterpret_cast<const void*>(find_gather(cache, head_dim))));
  return {};
}

}  // namespace quire::cuda
