// The kernels that run before and after FA3 in a chunk of expanded latent attention.
#include "base/numbers.h"
#include "cuda/attention/flashinfer/expanded_kernel.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"

namespace quire::cuda::flashinfer_backend {
namespace {

constexpr int kWarpSize = 32;
constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarpSize;
constexpr int kVec = 8;  // elements that a thread copies at a time, 16 bytes of the copy

using Bf16 = __nv_bfloat16;
using Elements = Vec<Bf16, kVec>;

// Grid: one warp per row.
template <typename Cache>
__global__ void __launch_bounds__(kBlock)
    gather_latents_kernel(const ExpandedBatch batch, const ExpandedChunk chunk,
                          const LatentGather call) {
  wait_for_previous_kernel();
  const int row = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (row >= chunk.num_rows) return;
  const int32_t* starts = batch.arrays.row_start;
  const int req =
      last_starting_by(chunk.first_req, chunk.num_reqs, row, [starts](int i) { return starts[i]; });
  const int position = chunk.kv_start + row - starts[req];
  const bool has_token = position < min(chunk.kv_end, batch.seq_lens[req]);
  const Cache* from = static_cast<const Cache*>(call.cache);
  if (has_token) {
    const int64_t page = batch.block_table[req * batch.max_pages + position / call.page_size];
    from += page * call.page_stride + position % call.page_size * call.token_stride;
  }
  const float scale = call.cache_scale != nullptr ? *call.cache_scale : 1.0F;
  const auto load = [&](int at) {
    return has_token ? load_widened<kVec>(from + at, scale) : Elements{};
  };
  Bf16* const latents = static_cast<Bf16*>(call.latents) + int64_t{row} * kLatentDim;
#pragma unroll
  for (int at = lane * kVec; at < kLatentDim; at += kWarpSize * kVec) {
    store_vec(latents + at, load(at));
  }
  // Eight lanes hold a rotated key, so a warp writes four heads at a time.
  constexpr int kLanes = kLatentRopeDim / kVec;
  const int column = lane % kLanes * kVec;
  const Elements rotated = load(kLatentDim + column);
  Bf16* const keys = static_cast<Bf16*>(call.keys) +
                     int64_t{row} * batch.num_heads * batch.dims.key + batch.dims.nope() + column;
  for (int head = lane / kLanes; head < batch.num_heads; head += kWarpSize / kLanes) {
    store_vec(keys + head * batch.dims.key, rotated);
  }
}

using GatherKernel = void (*)(ExpandedBatch, ExpandedChunk, LatentGather);

// Grid: one warp per query token and head.
template <int kValueDim>
__global__ void __launch_bounds__(kBlock)
    merge_kernel(const ExpandedBatch batch, const ExpandedChunk chunk, const ExpandedMerge call) {
  constexpr int kPerLane = 4;  // elements at a time, 16 bytes of the sums
  wait_for_previous_kernel();
  const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (item >= int64_t{call.num_tokens} * batch.num_heads) return;
  const int token = static_cast<int>(item / batch.num_heads);
  const int position = batch.seq_lens[chunk.first_req] - call.num_tokens + token;
  if (position < chunk.kv_start) return;

  const int64_t row = int64_t{call.first_token} * batch.num_heads + item;
  const float lse = call.lse[row];
  const float partial_lse = call.partial_lse[row];
  const float top = fmaxf(lse, partial_lse);
  const float weight = exp2f(lse - top);
  const float partial_weight = exp2f(partial_lse - top);
  const float sum = weight + partial_weight;
#pragma unroll
  for (int column = lane * kPerLane; column < kValueDim; column += kWarpSize * kPerLane) {
    const int64_t at = row * kValueDim + column;
    auto out = load_vec<kPerLane>(static_cast<const Bf16*>(call.out) + at);
    const auto partial = load_vec<kPerLane>(static_cast<const Bf16*>(call.partial) + at);
    Vec<float, kPerLane> sums;
    if (call.has_sums) sums = load_vec<kPerLane>(static_cast<const float*>(call.sums) + at);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const float before = call.has_sums ? sums.v[i] : to_float(out.v[i]);
      sums.v[i] = (weight * before + partial_weight * to_float(partial.v[i])) / sum;
      out.v[i] = from_float<Bf16>(sums.v[i]);
    }
    store_vec(call.sums + at, sums);
    store_vec(static_cast<Bf16*>(call.out) + at, out);
  }
  __syncwarp();  // every lane has read the LSE
  if (lane == 0) call.lse[row] = top + log2f(sum);
}

using MergeKernel = void (*)(ExpandedBatch, ExpandedChunk, ExpandedMerge);

MergeKernel merge_kernel_of(const ExpandedDims& dims) {
  return dims == kGlmDims ? merge_kernel<kGlmDims.value> : merge_kernel<kDeepSeekDims.value>;
}

LaunchShape one_warp_each(int64_t num_items) {
  return {.grid = static_cast<unsigned>(ceil_div(num_items, kWarps)),
          .block = kBlock,
          .overlap_start = true};
}

}  // namespace

void launch_latent_gather(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                          const LatentGather& call, DType cache, CudaStream& stream) {
  const GatherKernel kernel =
      cache == DType::kF8E4M3 ? gather_latents_kernel<__nv_fp8_e4m3> : gather_latents_kernel<Bf16>;
  QUIRE_LAUNCH(stream, kernel, one_warp_each(chunk.num_rows), batch, chunk, call);
}

void launch_expanded_merge(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                           const ExpandedMerge& call, CudaStream& stream) {
  QUIRE_LAUNCH(stream, merge_kernel_of(batch.dims),
               one_warp_each(int64_t{call.num_tokens} * batch.num_heads), batch, chunk, call);
}

cudaError_t load_expanded_merge(const ExpandedDims& dims) {
  cudaFuncAttributes attributes = {};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(merge_kernel_of(dims)));
}

}  // namespace quire::cuda::flashinfer_backend
