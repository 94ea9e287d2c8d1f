// Decode of at most 16 packed rows per request and KV head: the query heads of a group times the
// query tokens. All of them share one pass over K and V. One thread block per (split, KV head,
// request). Its warps process steps of 16 positions in turn. Each warp has its own pipeline of
// copies, so the loop needs no barrier. The warps' results are combined in shared memory at the
// end.
#include "cuda/attention/native/decode.cuh"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/tile.cuh"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"

namespace quire::cuda::native {

inline constexpr int kStepTokens = kUnitTokens;

template <class C>
struct Rows16 {
  static constexpr int kWarps = C::kDim == 256 ? 2 : 4;  // two thread blocks fit in 227 KB of
                                                         // shared memory per SM, one in 99 KB
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kTileBytes = kStepTokens * C::kRowBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;  // K and V
  static constexpr int kStages = kStageBytes > 4096 ? 3 : 4;
  static constexpr int kPipelineBytes = kWarps * kStages * kStageBytes;
  // At the end, the warps' rows reuse this memory.
  using Combined = CombinedRows<kWarps, 16, C::kDim>;
  static constexpr int kSharedBytes =
      kPipelineBytes > Combined::kBytes ? kPipelineBytes : Combined::kBytes;
};

// The page ids of a warp's next 32 steps, one per lane, so that a step's page id is loaded before
// its copies start.
class PageReader {
 public:
  __device__ PageReader(const int32_t* pages, int page_shift, int first, int stride, int end)
      : pages_(pages), shift_(page_shift), first_(first), stride_(stride), end_(end) {
    refill(0);
  }
  // The whole warp calls this, with steps in ascending order.
  __device__ int64_t page(int step) {
    if (step % 32 == 0 && step > 0) refill(step);
    return __shfl_sync(0xFFFFFFFFU, ids_, step % 32);
  }

 private:
  __device__ void refill(int step) {
    const int position = first_ + (step + static_cast<int>(threadIdx.x) % 32) * stride_;
    ids_ = position < end_ ? __ldg(pages_ + (position >> shift_)) : 0;
  }

  const int32_t* pages_;
  int shift_, first_, stride_, end_;
  int32_t ids_ = 0;
};

template <class C>
__device__ inline void put_rows(const typename Rows16<C>::Combined& combined,
                                const WarpRows<C>& rows, int warp, Lane lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp * 16 + lane.row + r * 8;
    float* o = combined.o + row * Rows16<C>::Combined::kRowFloats;
#pragma unroll
    for (int j = 0; j < C::kColumnTiles; ++j) {
      o[C::column(j, lane.quad * 2)] = rows.o[j][2 * r];
      o[C::column(j, lane.quad * 2 + 1)] = rows.o[j][2 * r + 1];
    }
    if (lane.quad == 0) {
      combined.max[row] = rows.max[r];
      combined.sum[row] = rows.sum[r];
    }
  }
}

template <class C>
__global__ __launch_bounds__(Rows16<C>::kThreads, 2) void rows16_kernel(const Params p) {
  using K = Rows16<C>;
  extern __shared__ __align__(128) unsigned char shared[];
  const int split = static_cast<int>(blockIdx.x);
  const int kv_head = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane_id = static_cast<int>(threadIdx.x) % 32;
  const Lane lane;
  trigger_dependent_launch();
  const Request req = read_request(p, p.first_req + static_cast<int>(blockIdx.z));
  const int num_rows = req.q_len * p.group;

  const auto partial_of = [&](int row) {
    return partial_index(p, req.first_token + row / p.group, kv_head * p.group + row % p.group,
                         split);
  };

  const Span all = {visible_span(p, req, 0).first, visible_span(p, req, req.q_len - 1).end};
  const Span span = split_span(all, split, p.num_splits, K::kWarps * kStepTokens);
  if (p.num_splits > 1 && span.first >= span.end) {
    for (int row = static_cast<int>(threadIdx.x); row < num_rows; row += K::kThreads) {
      finish_row_or_store_partial(p, kv_head * p.group + row % p.group, partial_of(row), -INFINITY,
                                  0.0F, true, true);
    }
    return;
  }

  const int first = (span.first & ~(kStepTokens - 1)) + warp * kStepTokens;
  constexpr int kStride = K::kWarps * kStepTokens;
  const int num_steps = first < span.end ? (span.end - first + kStride - 1) / kStride : 0;
  const PagedRows keys = PagedRows::keys<C>(p, kv_head);
  const PagedRows values = PagedRows::values<C>(p, kv_head);
  const int page_mask = (1 << p.page_shift) - 1;
  PageReader pages(req.pages, p.page_shift, first, kStride, span.end);
  const uint32_t pipeline =
      shared_address(shared) + static_cast<uint32_t>(warp * K::kStages * K::kStageBytes);
  const auto start_step = [&](int step) {
    if (step < num_steps) {
      const uint32_t stage = pipeline + static_cast<uint32_t>(step % K::kStages * K::kStageBytes);
      const int64_t page = pages.page(step);
      const auto page_of = [page](int) { return page; };
      copy_rows<C, kStepTokens, 32>(stage, keys, first + step * kStride, span, page_mask, lane_id,
                                    page_of);
      copy_rows<C, kStepTokens, 32>(stage + K::kTileBytes, values, first + step * kStride, span,
                                    page_mask, lane_id, page_of);
    }
    commit_copies();
  };
#pragma unroll
  for (int step = 0; step < K::kStages - 1; ++step) start_step(step);

  const LogitScale scale(p);
  WarpRows<C> rows;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = lane.row + r * 8;
    rows.visible[r] = row < num_rows ? visible_span(p, req, row / p.group) : Span{};
  }
  QueryPiece<C> query[C::kPieces];
  const auto read_query = [&](int row, int piece) {
    if (row >= num_rows || piece * 8 >= p.head_dim) return uint4{0, 0, 0, 0};
    const int64_t at =
        int64_t{req.first_token + row / p.group} * p.num_heads + kv_head * p.group + row % p.group;
    return *reinterpret_cast<const uint4*>(static_cast<const typename C::Q*>(p.q) +
                                           at * p.head_dim + piece * 8);
  };
#pragma unroll
  for (int i = 0; i < C::kPieces; ++i) query[i].load(i, lane, read_query);

  for (int step = 0; step < num_steps; ++step) {
    wait_for_copies<K::kStages - 2>();
    __syncwarp();
    const uint32_t stage = pipeline + static_cast<uint32_t>(step % K::kStages * K::kStageBytes);
    rows.template attend<kStepTokens>(
        scale, [&](int i) -> const QueryPiece<C>& { return query[i]; }, stage,
        stage + K::kTileBytes, first + step * kStride, lane);
    __syncwarp();
    start_step(step + K::kStages - 1);
  }
  wait_for_copies<0>();
  __syncthreads();  // the pipelines' memory is free
  rows.sum_up();
  const typename K::Combined combined(shared);
  put_rows<C>(combined, rows, warp, lane);
  __syncthreads();
  write_combined_rows<typename C::Q>(p, req, combined, num_rows, kv_head, partial_of,
                                     p.num_splits > 1);
}

void launch_rows16(CudaStream& stream, const Params& p, DType kv, int padded_dim) {
  const dim3 grid(static_cast<unsigned>(p.num_splits), static_cast<unsigned>(p.num_heads / p.group),
                  static_cast<unsigned>(p.num_reqs));
  with_config(p.q_dtype, kv, padded_dim, [&]<class C>(C) {
    using K = Rows16<C>;
    QUIRE_LAUNCH(stream, rows16_kernel<C>,
                 (LaunchShape{.grid = grid, .block = K::kThreads, .shared_bytes = K::kSharedBytes}),
                 p);
  });
}

}  // namespace quire::cuda::native
