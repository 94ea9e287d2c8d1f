// Calls FlashInfer's FA3 kernels for a KernelCall: prefill on Hopper. The schedule and the variants
// are defined here; unlike FlashInfer's own schedule, this one reads lengths on the device. All
// instances are in one file: to compile one of them alone takes half as long as all together.
#include <cmath>
#include <span>
#include <type_traits>

#include "cuda/attention/flashinfer/fa3.cuh"
#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/base/launch.h"

namespace quire::cuda::flashinfer_backend {

// A work item is one tile of one head. The plan lists the tiles, longest first. All heads of a tile
// are adjacent, because the heads of one KV head read the same keys and values.
struct Fa3Schedule : IndependentSchedule {
  struct Params {
    const int32_t* tile_req;
    const int32_t* tile_rows;
    const int32_t* kv_start;  // first entry in the block table, or first gathered position
    const int32_t* query_start;
    const int32_t* seq_lens;
    int num_items;
    cutlass::FastDivmod num_heads;
    cutlass::FastDivmod group_size;
  };

  struct WorkTileInfo {
    int round;
    int item;
    int tile, req, head, kv_head, first_token, kv_start, q_len, kv_len;

    CUTLASS_DEVICE bool is_valid(const Params& params) const { return item < params.num_items; }
    CUTLASS_DEVICE auto get_block_coord(const Params&) const {
      return cute::tuple{tile, head, kv_head, first_token, kv_start, q_len, kv_len, req};
    }
  };

  CUTLASS_DEVICE WorkTileInfo get_work(const Params& params, int round) const {
    WorkTileInfo info = {};
    info.round = round;
    info.item = snake_item(round);
    if (!info.is_valid(params)) return info;
    const int tile_idx = params.num_heads.divmod(info.head, info.item);
    info.kv_head = params.group_size.divide(info.head);
    info.tile = params.tile_rows[tile_idx];
    info.req = params.tile_req[tile_idx];
    info.first_token = params.query_start[info.req];
    info.q_len = params.query_start[info.req + 1] - info.first_token;
    info.kv_len = params.seq_lens[info.req];
    info.kv_start = params.kv_start[info.req];
    return info;
  }

  // The interface that the kernel calls.
  CUTLASS_DEVICE WorkTileInfo get_initial_work(const Params& params) const {
    return get_work(params, 0);
  }
  template <bool kIsProducer>
  CUTLASS_DEVICE WorkTileInfo get_next_work(const Params& params, const WorkTileInfo& last) const {
    return get_work(params, last.round + 1);
  }
};

// The sink is added to the denominator at the end; maxima are in log2 units. The base class leaves
// the logarithm of each row's sum in row_sum.
template <int kRowsPerThread>
struct SinkSoftmax : flashinfer::OnlineSoftmax<kRowsPerThread, /*WITH_SCALE=*/true> {
  using Base = flashinfer::OnlineSoftmax<kRowsPerThread, true>;
  float sink;  // minus infinity: none

  CUTLASS_DEVICE SinkSoftmax(float scale_log2, float sink_log2)
      : Base(scale_log2), sink(sink_log2) {}

  template <typename Scores>
  __forceinline__ __device__ void finalize(Scores& scores, float pv_scale = 1.0F) {
    Base::finalize(scores, pv_scale);
#pragma unroll
    for (int i = 0; i < size(this->row_sum); ++i) {
      const float lse = this->row_sum(i);
      const float top = fmaxf(lse, sink);
      const float sum = exp2f(lse - top) + exp2f(sink - top);
      this->scores_scale(i) *= exp2f(lse - top) / sum;
    }
  }
};

struct Fa3Inputs {
  float scale;
  const float* sinks;
  const float* k_scale;
  const float* v_scale;
};

struct Fa3Variant : flashinfer::AttentionVariantBase {
  float scale_log2;
  float sink_log2;

  template <typename MainloopParams, typename BlockCoord>
  __device__ Fa3Variant(const MainloopParams& params, const BlockCoord& block_coord) {
    const Fa3Inputs& inputs = params.additional_params;
    const int head = cute::get<1>(block_coord);
    scale_log2 = inputs.scale * flashinfer::math::log2e;
    sink_log2 = inputs.sinks != nullptr ? inputs.sinks[head] * flashinfer::math::log2e : -INFINITY;
  }

  template <int kRowsPerThread>
  __device__ auto GetAttentionUpdater() {
    return SinkSoftmax<kRowsPerThread>(scale_log2, sink_log2);
  }
};

// The copies of an FP8 cache are unscaled, so the results are multiplied by scale_pv, a member that
// FlashInfer reads by this name.
struct GatheredVariant : Fa3Variant {
  float scale_pv;

  template <typename MainloopParams, typename BlockCoord>
  __device__ GatheredVariant(const MainloopParams& params, const BlockCoord& block_coord)
      : Fa3Variant(params, block_coord) {
    const Fa3Inputs& inputs = params.additional_params;
    scale_log2 *= scale_or_one(inputs.k_scale);
    scale_pv = scale_or_one(inputs.v_scale);
  }
};

// The types that FlashInfer's kernel consists of.
template <typename T, int kHeadDim, bool kGathered>
struct Fa3 {
  using Traits = flashinfer::AttentionKernelTraits<
      /*USE_TMA_LOAD_KV=*/kGathered, kHeadDim, kHeadDim, kFa3TileTokens, kFa3TilePositions,
      /*NUM_STAGES=*/2, T, T, T, int32_t,
      std::conditional_t<kGathered, GatheredVariant, Fa3Variant>>;
  using Mainloop =
      std::conditional_t<kGathered,
                         flashinfer::CollectiveMainloop<Fa3Inputs, Traits, /*CAUSAL=*/true>,
                         flashinfer::SparseCollectiveMainloop<Fa3Inputs, Traits, /*CAUSAL=*/true>>;
  using Epilogue = Fa3Epilogue<Traits, kGathered>;

  static auto kernel() {
    return flashinfer::PrefillWithKVCacheKernel<Mainloop, Epilogue, Traits,
                                                /*LEFT_SLIDING_WINDOW=*/false,
                                                /*CAUSAL=*/true, Fa3Schedule>;
  }

  // The layout of queries and results.
  static auto rows(const KernelCall& call) {
    return flashinfer::get_gmem_layout(call.num_tokens, call.num_heads, kHeadDim,
                                       int64_t{call.num_heads} * kHeadDim, kHeadDim);
  }

  static typename Mainloop::Params mainloop(const KernelCall& call) {
    const T* q = static_cast<const T*>(call.q);
    const T* k = static_cast<const T*>(call.k);
    const T* v = static_cast<const T*>(call.v);
    const auto cache = [&](const int64_t* strides) {
      return flashinfer::get_gmem_layout(call.scratch_tokens, call.num_kv_heads, kHeadDim,
                                         strides[2], strides[1]);
    };
    const Fa3Inputs inputs = {call.scale, call.sinks, call.k_scale, call.v_scale};
    if constexpr (kGathered) {
      return Mainloop::to_underlying_arguments({q, rows(call), k, cache(call.k_strides), v,
                                                cache(call.v_strides), /*window_left=*/-1, inputs});
    } else {
      return Mainloop::to_underlying_arguments(
          {q, rows(call), k, cache(call.k_strides), v, cache(call.v_strides), call.block_table,
           /*window_left=*/-1, call.k_strides[0], call.v_strides[0],
           static_cast<uint32_t>(call.page_size), inputs});
    }
  }

  static typename Epilogue::Params epilogue(const KernelCall& call) {
    return Epilogue::to_underlying_arguments(
        {static_cast<T*>(call.out), rows(call), /*lse=*/nullptr,
         flashinfer::get_lse_gmem_layout(call.num_tokens, call.num_heads)});
  }
};

template <typename T, int kHeadDim, bool kGathered>
void launch_fa3(const KernelCall& call, CudaStream& stream) {
  using Types = Fa3<T, kHeadDim, kGathered>;
  const int num_items = call.num_tiles * call.num_heads;
  const Fa3Schedule::Params schedule = {call.tile_req,
                                        call.tile_rows,
                                        kGathered ? call.scratch_start : call.page_start,
                                        call.query_start,
                                        call.seq_lens,
                                        num_items,
                                        cutlass::FastDivmod(call.num_heads),
                                        cutlass::FastDivmod(call.num_heads / call.num_kv_heads)};
  const LaunchShape shape = {
      .grid = static_cast<unsigned>(num_items < call.num_sms ? num_items : call.num_sms),
      .block = Types::Traits::NUM_WARPS * 32,
      .shared_bytes = sizeof(typename Types::Traits::SharedStorage)};
  QUIRE_LAUNCH(stream, Types::kernel(), shape, Types::mainloop(call), Types::epilogue(call),
               schedule);
}

template <typename T, int kHeadDim, bool kGathered>
cudaError_t load_fa3() {
  cudaFuncAttributes attributes = {};
  return cudaFuncGetAttributes(
      &attributes, reinterpret_cast<const void*>(Fa3<T, kHeadDim, kGathered>::kernel()));
}

template <DType kDType, int kHeadDim, bool kGathered>
constexpr KernelInstance fa3_instance() {
  using T = std::conditional_t<kDType == DType::kBF16, cutlass::bfloat16_t, cutlass::half_t>;
  return {{kGathered ? KernelKind::kFa3Gathered : KernelKind::kFa3, kDType, kDType, kHeadDim,
           kFa3TileTokens, false},
          launch_fa3<T, kHeadDim, kGathered>,
          load_fa3<T, kHeadDim, kGathered>};
}

const KernelInstance* find_fa3(const KernelKey& key) {
  static constexpr KernelInstance kInstances[] = {
      fa3_instance<DType::kBF16, 64, false>(),  fa3_instance<DType::kBF16, 64, true>(),
      fa3_instance<DType::kBF16, 128, false>(), fa3_instance<DType::kBF16, 128, true>(),
      fa3_instance<DType::kF16, 64, false>(),   fa3_instance<DType::kF16, 64, true>(),
      fa3_instance<DType::kF16, 128, false>(),  fa3_instance<DType::kF16, 128, true>()};
  return find_instance({kInstances}, key);
}

}  // namespace quire::cuda::flashinfer_backend
