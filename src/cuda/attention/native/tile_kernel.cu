// Prefill, and decode of more than 16 packed rows that kRows64 does not support. One thread block
// per tile of 64 packed rows of one request and KV head: each of its four warps processes 16 rows.
// The warps share the positions, in double-buffered tiles. Tiles that no row of the thread block
// attends to are skipped.
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/tile.cuh"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"

namespace quire::cuda::native {

template <class C>
struct TileKernel {
  static constexpr int kThreads = 128;
  static constexpr int kTokens = C::kDim == 256 ? 32 : 64;
  static constexpr int kStages = 2;
  static constexpr int kQueryBytes = kTileRows * C::kDim * static_cast<int>(sizeof(typename C::Q));
  static constexpr int kTileBytes = kTokens * C::kRowBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;
  static constexpr int kSharedBytes = kQueryBytes + kStages * kStageBytes;
};

// The tiles of request r are numbered from (packed rows before r) / 64 + r on. This leaves enough
// numbers for any lengths, so a thread block finds its tile from query_start alone.
__device__ inline int first_tile(const Params& p, int req) {
  return (p.query_start[p.first_req + req] - p.first_token) * p.group / kTileRows + req;
}

// The request (of the phase) that tile `tile` belongs to.
__device__ inline int request_of_tile(const Params& p, int tile) {
  return last_starting_by(0, p.num_reqs, tile, [&](int req) { return first_tile(p, req); });
}

template <class C>
__device__ inline void write_tile_rows(const Params& p, const Request& req, const WarpRows<C>& rows,
                                       int first_row, int num_rows, int kv_head, int split,
                                       Lane lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + lane.row + r * 8;
    if (row >= num_rows) continue;
    const int token = req.first_token + row / p.group;
    const int head = kv_head * p.group + row % p.group;
    const int64_t partial_idx = partial_index(p, token, head, split);
    const float factor = finish_row_or_store_partial(p, head, partial_idx, rows.max[r], rows.sum[r],
                                                     p.num_splits > 1, lane.quad == 0);
    const int64_t at = (int64_t{token} * p.num_heads + head) * p.head_dim_v;
#pragma unroll
    for (int j = 0; j < C::kColumnTiles; ++j) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int d = C::column(j, lane.quad * 2 + i);
        if (d >= p.head_dim_v) continue;
        const float x = rows.o[j][2 * r + i];
        if (p.num_splits > 1) {
          p.partial_out[partial_idx * p.head_dim_v + d] = x;
        } else {
          static_cast<typename C::Q*>(p.out)[at + d] = from_float<typename C::Q>(x * factor);
        }
      }
    }
  }
}

template <class C>
__global__ __launch_bounds__(TileKernel<C>::kThreads) void tile_kernel(const Params p) {
  using K = TileKernel<C>;
  using Q = typename C::Q;
  extern __shared__ __align__(128) unsigned char shared[];
  // The last tiles attend to the most positions, so they start first.
  const int tile = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int kv_head = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const Lane lane;
  trigger_dependent_launch();
  const int req_idx = request_of_tile(p, tile);
  const Request req = read_request(p, p.first_req + req_idx);
  const int num_rows = req.q_len * p.group;
  const int first_row = (tile - first_tile(p, req_idx)) * kTileRows;
  if (first_row >= num_rows) return;
  const int last_row = min(num_rows, first_row + kTileRows) - 1;

  const Span all = {visible_span(p, req, first_row / p.group).first,
                    visible_span(p, req, last_row / p.group).end};
  const Span span = split_span(all, split, p.num_splits, kMinSplitTokens);
  const int first = span.first & ~15;
  const int num_tiles =
      span.first < span.end ? (span.end - first + K::kTokens - 1) / K::kTokens : 0;

  const uint32_t query_tile = shared_address(shared);
  for (int index = thread; index < kTileRows * C::kQueryRowPieces; index += K::kThreads) {
    const int row = index / C::kQueryRowPieces;
    const int piece = index % C::kQueryRowPieces;
    const int packed = first_row + row;
    const bool wanted = packed < num_rows && piece * 8 < p.head_dim;
    const Q* source = static_cast<const Q*>(p.q);
    if (wanted) {
      const int64_t at = int64_t{req.first_token + packed / p.group} * p.num_heads +
                         kv_head * p.group + packed % p.group;
      source += at * p.head_dim + piece * 8;
    }
    copy_async(query_tile + swizzled<C::kQueryRowPieces>(row, piece), source, wanted);
  }

  const PagedRows keys = PagedRows::keys<C>(p, kv_head);
  const PagedRows values = PagedRows::values<C>(p, kv_head);
  const int page_mask = (1 << p.page_shift) - 1;
  const auto page_of = [&](int position) -> int64_t {
    return __ldg(req.pages + (position >> p.page_shift));
  };
  const auto start_tile = [&](int i) {
    if (i < num_tiles) {
      const uint32_t stage =
          query_tile + static_cast<uint32_t>(K::kQueryBytes + i % K::kStages * K::kStageBytes);
      const int position = first + i * K::kTokens;
      copy_rows<C, K::kTokens, K::kThreads>(stage, keys, position, span, page_mask, thread,
                                            page_of);
      copy_rows<C, K::kTokens, K::kThreads>(stage + K::kTileBytes, values, position, span,
                                            page_mask, thread, page_of);
    }
    commit_copies();
  };
  start_tile(0);

  const LogitScale scale(p);
  WarpRows<C> rows;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + warp * 16 + lane.row + r * 8;
    rows.visible[r] = row < num_rows ? visible_span(p, req, row / p.group) : Span{};
  }
  const auto read_query = [&](int row, int piece) {
    return load_shared(query_tile + swizzled<C::kQueryRowPieces>(warp * 16 + row, piece));
  };
  const auto query = [&](int i) {
    QueryPiece<C> piece;
    piece.load(i, lane, read_query);
    return piece;
  };
  for (int i = 0; i < num_tiles; ++i) {
    start_tile(i + 1);
    wait_for_copies<1>();
    __syncthreads();
    const uint32_t stage =
        query_tile + static_cast<uint32_t>(K::kQueryBytes + i % K::kStages * K::kStageBytes);
    rows.template attend<K::kTokens>(scale, query, stage, stage + K::kTileBytes,
                                     first + i * K::kTokens, lane);
    __syncthreads();  // before the next copy to this stage
  }
  wait_for_copies<0>();
  rows.sum_up();
  write_tile_rows<C>(p, req, rows, first_row + warp * 16, num_rows, kv_head, split, lane);
}

void launch_tile(CudaStream& stream, const Params& p, DType kv, int padded_dim) {
  // The value of first_tile() for the end of the last request.
  const int64_t num_tiles = int64_t{p.num_tokens} * p.group / kTileRows + p.num_reqs;
  const dim3 grid(static_cast<unsigned>(num_tiles), static_cast<unsigned>(p.num_heads / p.group),
                  static_cast<unsigned>(p.num_splits));
  with_config(p.q_dtype, kv, padded_dim, [&]<class C>(C) {
    using K = TileKernel<C>;
    QUIRE_LAUNCH(stream, tile_kernel<C>,
                 (LaunchShape{.grid = grid, .block = K::kThreads, .shared_bytes = K::kSharedBytes}),
                 p);
  });
}

}  // namespace quire::cuda::native
