// Calls FlashInfer's FA3 kernel for an ExpandedAttention. There are as many key and value heads as
// query heads.
#include "cuda/attention/flashinfer/expanded_kernel.h"
#include "cuda/attention/flashinfer/fa3.cuh"
#include "cuda/base/launch.h"

namespace quire::cuda::flashinfer_backend {
namespace {

using Element = cutlass::bfloat16_t;

// FA3's causal mask lets token i attend to the first `i + 1 + kv_len - q_len` positions. A chunk
// ends at `kv_end`, which may precede the request's last token, so the mask gets `masked_q_len`,
// the query length of a request that ended there. If a whole tile is beyond `kv_end`,
// `masked_q_len` is the tile's first token + 1, so that all its tokens attend to the whole chunk.
// The epilogue needs the true q_len, which is passed as the coordinate of the request's index,
// because the kernel does not read that coordinate.
struct ExpandedSchedule : IndependentSchedule {
  struct Params {
    ExpandedBatch batch;
    int first_tile;
    int num_items;
    int kv_start;
    int kv_end;
    cutlass::FastDivmod num_heads;
  };

  struct WorkTileInfo {
    int round;
    int item;
    int tile, head, first_token, row, masked_q_len, kv_len, q_len;

    CUTLASS_DEVICE bool is_valid(const Params& params) const { return item < params.num_items; }
    CUTLASS_DEVICE auto get_block_coord(const Params&) const {
      return cute::tuple{tile, head, head, first_token, row, masked_q_len, kv_len, q_len};
    }
  };

  CUTLASS_DEVICE WorkTileInfo get_work(const Params& params, int round) const {
    WorkTileInfo info = {};
    info.round = round;
    info.item = snake_item(round);
    if (!info.is_valid(params)) return info;
    const ExpandedBatch& batch = params.batch;
    const int tile_idx = params.first_tile + params.num_heads.divmod(info.head, info.item);
    info.tile = batch.arrays.tile_idx[tile_idx];
    const int req = batch.arrays.tile_req[tile_idx];
    const int first_token = batch.query_start[req];
    info.first_token = first_token - batch.first_token;
    info.q_len = batch.query_start[req + 1] - first_token;
    info.row = batch.arrays.row_start[req];
    const int seq_len = batch.seq_lens[req];
    const int kv_end = seq_len < params.kv_end ? seq_len : params.kv_end;
    info.kv_len = kv_end > params.kv_start ? kv_end - params.kv_start : 0;
    const int ending_q_len = kv_end - (seq_len - info.q_len);
    const int least_q_len = info.tile * kExpandedTile + 1;
    info.masked_q_len = ending_q_len > least_q_len ? ending_q_len : least_q_len;
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

struct ExpandedVariant : flashinfer::AttentionVariantBase {
  float scale_log2;

  template <typename MainloopParams, typename BlockCoord>
  __device__ ExpandedVariant(const MainloopParams& params, const BlockCoord&)
      : scale_log2(params.additional_params * flashinfer::math::log2e) {}

  template <int kRowsPerThread>
  __device__ auto GetAttentionUpdater() {
    return flashinfer::OnlineSoftmax<kRowsPerThread, /*WITH_SCALE=*/true>(scale_log2);
  }
};

// kPositions is the number of positions that the kernel reads at once.
template <int kKeyDim, int kValueDim, int kPositions>
using ExpandedTraits =
    flashinfer::AttentionKernelTraits</*USE_TMA_LOAD_KV=*/true, kKeyDim, kValueDim, kExpandedTile,
                                      kPositions, /*NUM_STAGES=*/2, Element, Element, Element,
                                      int32_t, ExpandedVariant>;

// Stores the LSE of each row besides the results.
template <typename Traits>
struct ExpandedEpilogue : Fa3Epilogue<Traits, /*kGathered=*/true> {
  using Base = flashinfer::CollectiveEpilogue<Traits>;
  using Params = typename Base::Params;

  template <typename BlockCoord, typename Shared, typename Out, typename Lse, typename TiledMma>
  CUTLASS_DEVICE void store(const Params& params, const Out& out, const Lse& lse, Shared& shared,
                            TiledMma mma, int thread, const BlockCoord& coord) {
    const int q_len = cute::get<7>(coord);
    this->store_rows(params, out, shared, mma, thread, coord, q_len);
    // The (row, column) of each of the thread's results. The thread that has a row's first column
    // stores the row's LSE.
    const auto places = mma.get_thread_slice(thread).partition_C(
        cute::make_identity_tensor(cute::select<0, 1>(typename Base::TileShape_PDV{})));
    const auto rows =
        places(cute::make_coord(cute::_0{}, cute::_, cute::_0{}), cute::_, cute::_0{});
    if (cute::get<1>(rows(cute::_0{})) != 0) return;
#pragma unroll
    for (int i = 0; i < cute::size(lse); ++i) {
      const int token = cute::get<0>(coord) * kExpandedTile + cute::get<0>(rows(i));
      if (token >= q_len) continue;
      params.lse_ptr[params.layout_LSE(cute::get<1>(coord), cute::get<3>(coord) + token)] = lse(i);
    }
  }

  template <typename BlockCoord, typename Shared>
  CUTLASS_DEVICE void store_zero(const Params& params, Shared& shared, int thread,
                                 const BlockCoord& coord) {
    Base::store_zero(params, shared, thread, cute::replace<5>(coord, cute::get<7>(coord)));
  }
};

template <typename Traits>
void launch_attention(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                      const ExpandedAttention& call, CudaStream& stream) {
  using Mainloop = flashinfer::CollectiveMainloop<float, Traits, /*CAUSAL=*/true>;
  using Epilogue = ExpandedEpilogue<Traits>;
  // TMA reads whole tiles, so all rows of a tile must belong to one request.
  static_assert(kExpandedTile % Traits::CTA_KV == 0);
  static_assert(sizeof(typename Traits::SharedStorage) <= size_t{227} << 10);
  constexpr int kKeyDim = Traits::HEAD_DIM_QK;
  constexpr int kValueDim = Traits::HEAD_DIM_VO;
  const auto heads = [&](int num_rows, int width) {
    return flashinfer::get_gmem_layout(num_rows, batch.num_heads, width,
                                       int64_t{batch.num_heads} * width, width);
  };
  const auto mainloop = Mainloop::to_underlying_arguments(
      {static_cast<const Element*>(call.q), heads(batch.num_tokens, kKeyDim),
       static_cast<const Element*>(call.keys), heads(call.max_rows, kKeyDim),
       static_cast<const Element*>(call.values), heads(call.max_rows, kValueDim),
       /*window_left=*/-1, call.scale});
  const auto epilogue = Epilogue::to_underlying_arguments(
      {static_cast<Element*>(call.out), heads(batch.num_tokens, kValueDim), call.lse,
       flashinfer::get_lse_gmem_layout(batch.num_tokens, batch.num_heads)});
  const int num_items = chunk.num_tiles * batch.num_heads;
  const ExpandedSchedule::Params schedule = {batch,        chunk.first_tile,
                                             num_items,    chunk.kv_start,
                                             chunk.kv_end, cutlass::FastDivmod(batch.num_heads)};
  const LaunchShape shape = {
      .grid = static_cast<unsigned>(num_items < call.num_sms ? num_items : call.num_sms),
      .block = Traits::NUM_WARPS * 32,
      .shared_bytes = sizeof(typename Traits::SharedStorage)};
  QUIRE_LAUNCH(stream,
               (flashinfer::PrefillWithKVCacheKernel<Mainloop, Epilogue, Traits,
                                                     /*LEFT_SLIDING_WINDOW=*/false, /*CAUSAL=*/true,
                                                     ExpandedSchedule>),
               shape, mainloop, epilogue, schedule);
}

}  // namespace

bool has_expanded_kernel(const ExpandedDims& dims) {
  return dims == kDeepSeekDims || dims == kGlmDims;
}

void launch_expanded_attention(const ExpandedBatch& batch, const ExpandedChunk& chunk,
                               const ExpandedAttention& call, CudaStream& stream) {
  if (batch.dims == kGlmDims) {
    // Shared memory holds two stages of 64 positions.
    return launch_attention<ExpandedTraits<kGlmDims.key, kGlmDims.value, 64>>(batch, chunk, call,
                                                                              stream);
  }
  launch_attention<ExpandedTraits<kDeepSeekDims.key, kDeepSeekDims.value, kExpandedTile>>(
      batch, chunk, call, stream);
}

}  // namespace quire::cuda::flashinfer_backend
