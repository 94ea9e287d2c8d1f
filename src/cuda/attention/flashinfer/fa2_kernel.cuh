// Calls FlashInfer's FA2 kernel for a KernelCall. The parameters and the variant are defined here,
// as FlashInfer's templates require.
//
// FlashInfer's own planner takes lengths from the host. Here the device reads them: a length is
// seq_lens[req], and a request's pages are a row of the block table, so no conversion is needed.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <flashinfer/attention/prefill.cuh>
#include <span>
#include <type_traits>

#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/base/launch.h"

namespace quire::cuda::flashinfer_backend {

// The kernel expects FlashInfer's member names.
template <typename Q, typename Kv>
struct PagedParams {
  using DTypeQ = Q;
  using DTypeKV = Kv;
  using DTypeO = Q;
  using IdType = int32_t;

  Q* q = nullptr;
  flashinfer::paged_kv_t<Kv, int32_t> paged_kv;
  int32_t* q_indptr = nullptr;
  Q* o = nullptr;
  float* lse = nullptr;
  flashinfer::uint_fastdiv group_size;
  uint32_t num_qo_heads = 0;
  int32_t q_stride_n = 0;
  int32_t q_stride_h = 0;
  uint32_t k_sf_stride_page = 0, k_sf_stride_n = 0, k_sf_stride_h = 0;
  uint32_t v_sf_stride_page = 0, v_sf_stride_n = 0, v_sf_stride_h = 0;
  int32_t window_left = -1;
  int32_t* request_indices = nullptr;
  int32_t* qo_tile_indices = nullptr;
  int32_t* kv_tile_indices = nullptr;
  int32_t* o_indptr = nullptr;
  bool* block_valid_mask = nullptr;
  int32_t* kv_chunk_size_ptr = nullptr;
  bool partition_kv = false;

  int window = 0;
  float scale = 1.0F;
  float softcap = 0.0F;
  const int32_t* seq_lens = nullptr;
  const float* sinks = nullptr;
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;

  __device__ uint32_t get_qo_len(uint32_t req) const { return q_indptr[req + 1] - q_indptr[req]; }
  __device__ uint32_t get_kv_len(uint32_t req) const { return seq_lens[req]; }
};

template <int kTileRows, bool kSoftcap, bool kScaled>
struct Variant : flashinfer::AttentionVariantBase {
  static constexpr bool use_softmax = true;

  uint32_t qo_len, kv_len, window_left;
  float sm_scale_log2, inner_scale, v_scale;

  template <typename Params>
  __device__ Variant(const Params& params, uint32_t req, uint8_t*) {
    qo_len = params.get_qo_len(req);
    kv_len = params.get_kv_len(req);
    window_left = params.window > 0 ? params.window - 1 : kv_len;
    const float scale = kScaled ? params.scale * scale_or_one(params.k_scale) : params.scale;
    sm_scale_log2 = flashinfer::math::log2e * (kSoftcap ? params.softcap : scale);
    if constexpr (kSoftcap) inner_scale = scale / params.softcap;
    if constexpr (kScaled) v_scale = scale_or_one(params.v_scale);
    // The plan is made from upper bounds, so this chunk may be beyond the true length. It then has
    // no rows and writes nothing, because its partial row belongs to another token's chunk.
    if (params.partition_kv &&
        params.kv_tile_indices[blockIdx.x] >=
            num_chunks(kv_len, params.window, kTileRows, *params.kv_chunk_size_ptr)) {
      qo_len = kv_len = 0;
    }
  }

  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    if constexpr (kSoftcap) return flashinfer::math::tanh(logits * inner_scale);
    return logits;
  })

  REGISTER_LOGITS_MASK(params, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx,
                       { return kv_idx + qo_len + window_left >= kv_len + qo_idx; })

  // A sink is added to the denominator once, in the first chunk; m is in log2 units here.
  REGISTER_M_D_UPDATE(params, kv_tile_idx, qo_head_idx, m, d, scale, {
    scale = 1.0F;
    if (params.sinks == nullptr || kv_tile_idx != 0 || qo_head_idx >= params.num_qo_heads) return;
    const float sink = params.sinks[qo_head_idx] * flashinfer::math::log2e;
    const float max = fmaxf(m, sink);
    scale = exp2f(m - max);
    d = d * scale + exp2f(sink - max);
    m = max;
  })

  REGISTER_OUTPUT_TRANSFORM(params, output, batch_idx, qo_idx, qo_head_idx, m, d, scale, {
    if (m == -flashinfer::math::inf) return 0.0F;
    return output * ((kScaled ? scale * v_scale : scale) / d);
  })
};

template <typename Q, typename Kv>
PagedParams<Q, Kv> make_params(const KernelCall& call, int head_dim) {
  PagedParams<Q, Kv> params;
  const auto ids = [](const int32_t* data) { return const_cast<int32_t*>(data); };
  params.q = static_cast<Q*>(const_cast<void*>(call.q));
  params.paged_kv = flashinfer::paged_kv_t<Kv, int32_t>(
      call.num_kv_heads, call.page_size, head_dim, call.num_reqs, flashinfer::QKVLayout::kHND,
      static_cast<Kv*>(const_cast<void*>(call.k)), static_cast<Kv*>(const_cast<void*>(call.v)),
      call.k_strides, call.v_strides, ids(call.block_table), ids(call.page_start), nullptr);
  params.q_indptr = ids(call.query_start);
  params.o = static_cast<Q*>(call.out);
  params.lse = call.lse;
  params.group_size = flashinfer::uint_fastdiv(call.num_heads / call.num_kv_heads);
  params.num_qo_heads = call.num_heads;
  params.q_stride_n = call.num_heads * head_dim;
  params.q_stride_h = head_dim;
  params.window_left = call.window - 1;
  params.request_indices = ids(call.tile_req);
  params.qo_tile_indices = ids(call.tile_rows);
  params.kv_tile_indices = ids(call.tile_chunk);
  params.o_indptr = ids(call.partial_start);
  params.kv_chunk_size_ptr = ids(call.chunk_tokens);
  params.block_valid_mask = const_cast<bool*>(call.tile_valid);
  params.partition_kv = call.split;
  params.window = call.window;
  params.scale = call.scale;
  params.softcap = call.softcap;
  params.seq_lens = call.seq_lens;
  params.sinks = call.sinks;
  params.k_scale = call.k_scale;
  params.v_scale = call.v_scale;
  return params;
}

// Positions that a warp processes at once, in units of 16. FlashInfer makes the same choice for
// Hopper and the A100 with two resident thread blocks per SM. One choice per tile keeps the number
// of instances small, and its shared memory (at most 96 KiB) also fits on Ada.
constexpr uint32_t num_mma_kv(int tile_rows, int head_dim) {
  if (tile_rows == 16) return head_dim == 256 ? 1 : 2;
  if (tile_rows == 128) return 4;
  return head_dim == 256 ? 4 : 8;
}

template <typename Q, typename Kv, int kHeadDim, int kTileRows, bool kSoftcap>
void launch_fa2(const KernelCall& call, CudaStream& stream) {
  using flashinfer::get_num_mma_q;
  using flashinfer::get_num_warps_kv;
  using flashinfer::get_num_warps_q;
  using Params = PagedParams<Q, Kv>;
  using Traits =
      flashinfer::KernelTraits<flashinfer::MaskMode::kCausal, kTileRows, get_num_mma_q(kTileRows),
                               num_mma_kv(kTileRows, kHeadDim), kHeadDim / 16, kHeadDim / 16,
                               get_num_warps_q(kTileRows), get_num_warps_kv(kTileRows),
                               flashinfer::PosEncodingMode::kNone, Q, Kv, Q, float, int32_t,
                               Variant<kTileRows, kSoftcap, !std::is_same_v<Q, Kv>>>;
  static_assert(!Traits::IsInvalid());
  static_assert(kSplitUnit % Traits::CTA_TILE_KV == 0);
  // Before it waits for the previous kernel, this kernel reads only lengths and the plan. Both are
  // complete before the layer's first kernel starts, because neither the metadata kernel nor the
  // copies let a kernel start early.
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(call.num_tiles), 1,
                                          static_cast<unsigned>(call.num_kv_heads)),
                             .block = dim3(32, Traits::NUM_WARPS_Q, Traits::NUM_WARPS_KV),
                             .shared_bytes = sizeof(typename Traits::SharedStoragePaged),
                             .overlap_start = true};
  QUIRE_LAUNCH(stream, (flashinfer::BatchPrefillWithPagedKVCacheKernel<Traits, Params>), shape,
               make_params<Q, Kv>(call, kHeadDim));
}

template <DType kQ, DType kKv, int kHeadDim, int kTileRows, bool kSoftcap>
constexpr KernelInstance fa2_instance() {
  using Q = std::conditional_t<kQ == DType::kBF16, __nv_bfloat16, __half>;
  using Kv = std::conditional_t<kKv == kQ, Q, __nv_fp8_e4m3>;
  return {{KernelKind::kFa2, kQ, kKv, kHeadDim, kTileRows, kSoftcap},
          launch_fa2<Q, Kv, kHeadDim, kTileRows, kSoftcap>};
}

template <DType kQ, DType kKv, int kHeadDim>
std::span<const KernelInstance> fa2_instances() {
  // With head_dim 256 there are not enough registers for 128 rows, so the last two instances repeat
  // the two before them.
  constexpr int kWidest = kHeadDim == 256 ? 64 : 128;
  static constexpr KernelInstance kInstances[] = {
      fa2_instance<kQ, kKv, kHeadDim, 16, false>(),
      fa2_instance<kQ, kKv, kHeadDim, 16, true>(),
      fa2_instance<kQ, kKv, kHeadDim, 64, false>(),
      fa2_instance<kQ, kKv, kHeadDim, 64, true>(),
      fa2_instance<kQ, kKv, kHeadDim, kWidest, false>(),
      fa2_instance<kQ, kKv, kHeadDim, kWidest, true>(),
  };
  return kInstances;
}

template <DType kQ, DType kKv, int... kHeadDims>
const KernelInstance* find_fa2(const KernelKey& key) {
  return find_instance({fa2_instances<kQ, kKv, kHeadDims>()...}, key);
}

}  // namespace quire::cuda::flashinfer_backend
