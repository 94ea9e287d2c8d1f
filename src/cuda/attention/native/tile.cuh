// A warp's share of attention on tensor cores (sm_80 and later): the PTX instructions, the layout
// of Q, K and V in shared memory, and the attention of 16 rows with online softmax.
//
// A row is kDim elements in pieces of 16 bytes. Piece c of row r is stored at position c ^ (r % 8)
// of the row, so that neither the copies nor the reads below have bank conflicts.
//
// QK^T may sum over the head dimension in any order. So a thread's operands for several mma steps
// are whole pieces of K's row, and the same elements of Q's row. This works for 16-bit types and
// FP8 alike and needs no transposition. PV sums over positions, so V must be transposed. 16-bit
// elements are transposed by ldmatrix. FP8 bytes are paired while they are widened, so that each
// thread's columns of the output are adjacent in a piece (see column()).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "cuda/attention/native/rows.cuh"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"

namespace quire::cuda::native {

// Copies 16 bytes from global to shared memory. If `wanted` is false, it writes 16 zeros and does
// not read `source`.
__device__ inline void copy_async(uint32_t target, const void* source, bool wanted) {
  const int num_bytes = wanted ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(num_bytes)
               : "memory");
}

__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending of this thread's copy groups are pending.
template <int kPending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

template <typename QType, typename KvType, int kHeadDim>
struct Config {
  using Q = QType;
  using Kv = KvType;
  static constexpr int kDim = kHeadDim;  // padded with zeros beyond head_dim
  static constexpr bool kIsFp8 = sizeof(Kv) == 1;
  using P = std::conditional_t<kIsFp8, __half, Q>;  // type of the softmax's weights; F16 holds E4M3
                                                    // exactly

  static constexpr int kElements = 16 / static_cast<int>(sizeof(Kv));  // elements per piece
  static constexpr int kRowPieces = kDim / kElements;                  // pieces per row of K or V
  static constexpr int kRowBytes = kRowPieces * 16;
  static constexpr int kPieces = kRowPieces / 4;  // per thread; 4 threads share a row
  static constexpr int kSteps = kElements / 4;    // mma steps per piece
  static constexpr int kQueryRowPieces = kDim / 8;
  static constexpr int kColumnTiles = kDim / 8;  // column tiles of the output, of 8 columns each
  static constexpr int kRun = kIsFp8 ? (kDim < 128 ? kDim / 8 : 16) : 1;  // see column()

  // The output column of element n (0 to 7) of column tile j.
  __device__ static int column(int j, int n) { return j / kRun * 8 * kRun + n * kRun + j % kRun; }
  // Index in the row of a thread's i-th piece.
  __device__ static int piece(int i, int quad_lane) {
    return kPieces == 1 ? quad_lane : i / 2 * 8 + quad_lane * 2 + i % 2;
  }
};

template <int kRowPieces>
__device__ inline uint32_t swizzled(int row, int piece) {
  constexpr int kMask = (kRowPieces < 8 ? kRowPieces : 8) - 1;
  return static_cast<uint32_t>((row * kRowPieces + (piece ^ (row & kMask))) * 16);
}

struct Lane {
  int row;   // 0 to 7; this thread has rows `row` and `row` + 8 of the warp's 16 rows
  int quad;  // 0 to 3
  __device__ Lane() : row(threadIdx.x % 32 / 4), quad(threadIdx.x % 4) {}
};

// Converts a thread's part of a wgmma's result, products of its two rows with 2 * kCount positions
// from `first` on, to logits. Positions that a row does not attend to get -infinity.
template <int kCount>
__device__ __forceinline__ void scale_and_mask(float (&s)[kCount], const LogitScale& scale,
                                               int first, const Span (&visible)[2],
                                               Span visible_to_all, Lane lane) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) s[i] *= scale.inner;
  if (scale.softcap > 0.0F) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) s[i] = scale.softcap * tanhf(s[i]);
  }
  if (first >= visible_to_all.first && first + 2 * kCount <= visible_to_all.end) return;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int position = first + i / 4 * 8 + lane.quad * 2 + i % 2;
    const Span span = visible[i / 2 % 2];
    if (position < span.first || position >= span.end) s[i] = -INFINITY;
  }
}

// The query fragments of one of a thread's pieces: [step][register].
template <class C>
struct QueryPiece {
  uint32_t a[C::kSteps][4];

  // `read(row, piece)` returns 8 elements of one of the warp's 16 rows.
  template <class Read>
  __device__ void load(int i, Lane lane, Read read) {
#pragma unroll
    for (int half = 0; half < C::kSteps / 2; ++half) {
      const int piece = C::piece(i, lane.quad) * (C::kSteps / 2) + half;
      const uint4 upper = read(lane.row, piece);
      const uint4 lower = read(lane.row + 8, piece);
      const uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
      const uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        a[half * 2][r] = first[r];
        a[half * 2 + 1][r] = second[r];
      }
    }
  }
};

// s[16, 8] += Q[16, piece] K[8, piece]^T.
template <class C>
__device__ inline void multiply_keys(float (&s)[4], const QueryPiece<C>& q, uint4 k) {
  if constexpr (C::kIsFp8) {
    const uint32_t words[4] = {k.x, k.y, k.z, k.w};
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      mma<typename C::Q>(s, q.a[step], widen<typename C::Q>(words[step] & 0xFFFF),
                         widen<typename C::Q>(words[step] >> 16));
    }
  } else {
    mma<typename C::Q>(s, q.a[0], k.x, k.y);
    mma<typename C::Q>(s, q.a[1], k.z, k.w);
  }
}

// o[16, kDim] += P[16, 16] V[16, kDim], V's rows from row `row` of the tile on.
template <class C>
__device__ inline void multiply_values(float (&o)[C::kColumnTiles][4], const uint32_t (&p)[4],
                                       uint32_t v_tile, int row, Lane lane) {
  if constexpr (C::kIsFp8) {
    constexpr int kWords = C::kRun / 4;
#pragma unroll
    for (int part = 0; part < C::kColumnTiles / C::kRun; ++part) {
      uint32_t bytes[4][kWords];  // of the four positions that this thread pairs
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = row + lane.quad * 2 + i % 2 + i / 2 * 8;
        if constexpr (kWords == 4) {
          const uint4 x = load_shared(v_tile + swizzled<C::kRowPieces>(at, part * 8 + lane.row));
          bytes[i][0] = x.x, bytes[i][1] = x.y, bytes[i][2] = x.z, bytes[i][3] = x.w;
        } else {
          const uint2 x = load_shared_8(v_tile + swizzled<C::kRowPieces>(at, lane.row / 2) +
                                        static_cast<uint32_t>(lane.row % 2 * 8));
          bytes[i][0] = x.x, bytes[i][1] = x.y;
        }
      }
#pragma unroll
      for (int j = 0; j < C::kRun; ++j) {
        const int word = j / 4;
        const uint32_t pick = 0x40U + 0x11U * static_cast<uint32_t>(j % 4);
        const uint32_t b0 = __byte_perm(bytes[0][word], bytes[1][word], pick);
        const uint32_t b1 = __byte_perm(bytes[2][word], bytes[3][word], pick);
        mma<__half>(o[part * C::kRun + j], p, widen<__half>(b0 & 0xFFFF),
                    widen<__half>(b1 & 0xFFFF));
      }
    }
  } else {
    const int at = row + static_cast<int>(threadIdx.x) % 16;
    const int half = static_cast<int>(threadIdx.x) % 32 / 16;
#pragma unroll
    for (int pair = 0; pair < C::kColumnTiles / 2; ++pair) {
      const uint4 v = load_transposed(v_tile + swizzled<C::kRowPieces>(at, pair * 2 + half));
      mma<typename C::P>(o[pair * 2], p, v.x, v.y);
      mma<typename C::P>(o[pair * 2 + 1], p, v.z, v.w);
    }
  }
}

// One head of the paged keys or values, in bytes.
struct PagedRows {
  const char* base;
  int64_t page_stride;
  int64_t token_stride;
  int row_pieces;  // pieces within head_dim; none if it is not positive

  // Columns from `first_column` on, a multiple of C::kElements.
  template <class C>
  __device__ static PagedRows keys(const Params& p, int kv_head, int first_column = 0) {
    constexpr int64_t kSize = sizeof(typename C::Kv);
    return {static_cast<const char*>(p.k) + (kv_head * p.head_stride_k + first_column) * kSize,
            p.page_stride_k * kSize, p.token_stride_k * kSize,
            (p.head_dim - first_column) / C::kElements};
  }
  template <class C>
  __device__ static PagedRows values(const Params& p, int kv_head, int first_column = 0) {
    constexpr int64_t kSize = sizeof(typename C::Kv);
    return {static_cast<const char*>(p.v) + (kv_head * p.head_stride_v + first_column) * kSize,
            p.page_stride_v * kSize, p.token_stride_v * kSize,
            (p.head_dim_v - first_column) / C::kElements};
  }
};

// Starts the copies of kTokens positions from `first` on; this is thread `thread` of kThreads.
// Positions outside `span` become zeros without being read: the page table and the pages hold
// arbitrary data there, and NaN times a weight of zero is NaN. `page_of(position)` is called only
// for positions in `span`.
template <class C, int kTokens, int kThreads, class PageOf>
__device__ inline void copy_rows(uint32_t tile, const PagedRows& rows, int first, Span span,
                                 int page_mask, int thread, PageOf page_of) {
#pragma unroll
  for (int i = 0; i < kTokens * C::kRowPieces / kThreads; ++i) {
    const int index = i * kThreads + thread;
    const int row = index / C::kRowPieces;
    const int piece = index % C::kRowPieces;
    const int position = first + row;
    const bool wanted = position >= span.first && position < span.end && piece < rows.row_pieces;
    const char* source = rows.base;
    if (wanted) {
      source += page_of(position) * rows.page_stride + (position & page_mask) * rows.token_stride +
                piece * 16;
    }
    copy_async(tile + swizzled<C::kRowPieces>(row, piece), source, wanted);
  }
}

// The accumulators of 16 rows. A thread holds rows lane.row (index 0) and lane.row + 8 (1) in two
// columns of each column tile: o[j][0..1] belong to the first row, o[j][2..3] to the second.
template <class C>
struct WarpRows {
  float o[C::kColumnTiles][4] = {};
  float max[2] = {-INFINITY, -INFINITY};  // log2 units
  float sum[2] = {0.0F, 0.0F};            // this thread's share until sum_up()
  Span visible[2];

  // Adds kTokens positions from `first` on. `query(i)` returns the QueryPiece of a thread's piece
  // i.
  template <int kTokens, class Query>
  __device__ void attend(const LogitScale& scale, Query query, uint32_t k_tile, uint32_t v_tile,
                         int first, Lane lane) {
    float s[kTokens / 8][4] = {};
#pragma unroll
    for (int i = 0; i < C::kPieces; ++i) {
      const QueryPiece<C> q = query(i);
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
        multiply_keys<C>(s[t], q,
                         load_shared(k_tile + swizzled<C::kRowPieces>(t * 8 + lane.row,
                                                                      C::piece(i, lane.quad))));
      }
    }
    mask_and_scale<kTokens>(s, scale, first, lane);
    weigh<kTokens>(s);
#pragma unroll
    for (int t = 0; t < kTokens / 16; ++t) {
      using P = typename C::P;
      const uint32_t p[4] = {pack<P>(s[2 * t][0], s[2 * t][1]), pack<P>(s[2 * t][2], s[2 * t][3]),
                             pack<P>(s[2 * t + 1][0], s[2 * t + 1][1]),
                             pack<P>(s[2 * t + 1][2], s[2 * t + 1][3])};
      multiply_values<C>(o, p, v_tile, t * 16, lane);
    }
  }

  // Reduces `sum` over the four threads that share a row; each gets the row's sum.
  __device__ void sum_up() {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = sum_of_row<1, 4>(sum[r]);
  }

 private:
  template <int kTokens>
  __device__ void mask_and_scale(float (&s)[kTokens / 8][4], const LogitScale& scale, int first,
                                 Lane lane) const {
    if (scale.softcap > 0.0F) {
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[t][i] = scale.softcap * tanhf(s[t][i] * scale.inner);
      }
    } else {
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[t][i] *= scale.inner;
      }
    }
    if (first >= max_of(visible[0].first, visible[1].first) &&
        first + kTokens <= min_of(visible[0].end, visible[1].end)) {
      return;
    }
#pragma unroll
    for (int t = 0; t < kTokens / 8; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int position = first + t * 8 + lane.quad * 2 + i % 2;
        const Span span = visible[i / 2];
        if (position < span.first || position >= span.end) s[t][i] = -INFINITY;
      }
    }
  }

  // Converts logits to weights, and rescales the accumulators to the new maxima.
  template <int kTokens>
  __device__ void weigh(float (&s)[kTokens / 8][4]) {
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = max[r];
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
        top = fmaxf(top, fmaxf(s[t][2 * r], s[t][2 * r + 1]));
      }
      top = max_of_row<1, 4>(top);
      const float origin = top == -INFINITY ? 0.0F : top;  // no positions yet: all weights are 0
      shrink[r] = fast_exp2(max[r] - origin);
      max[r] = top;
      sum[r] *= shrink[r];
#pragma unroll
      for (int t = 0; t < kTokens / 8; ++t) {
        s[t][2 * r] = fast_exp2(s[t][2 * r] - origin);
        s[t][2 * r + 1] = fast_exp2(s[t][2 * r + 1] - origin);
        sum[r] += s[t][2 * r] + s[t][2 * r + 1];
      }
    }
    if (!__any_sync(0xFFFFFFFFU, shrink[0] != 1.0F || shrink[1] != 1.0F)) return;
#pragma unroll
    for (int j = 0; j < C::kColumnTiles; ++j) {
      o[j][0] *= shrink[0];
      o[j][1] *= shrink[0];
      o[j][2] *= shrink[1];
      o[j][3] *= shrink[1];
    }
  }

  __device__ static int max_of(int a, int b) {
    return a > b ? a : b;
  }
  __device__ static int min_of(int a, int b) {
    return a < b ? a : b;
  }
};

// Calls `visit` with the Config of the query's and the cache's types and of this head dimension, of
// at most kWidest.
template <int kWidest = 256, class Visit>
void with_config(DType q, DType kv, int padded_dim, Visit visit) {
  const auto with_types = [&]<typename Q, typename Kv>(Q, Kv) {
    if (padded_dim == 64) return visit(Config<Q, Kv, 64>());
    if (padded_dim == 128) return visit(Config<Q, Kv, 128>());
    if constexpr (kWidest > 256) {
      if (padded_dim == 512) return visit(Config<Q, Kv, 512>());
    }
    QUIRE_CHECK(padded_dim == 256, "[native] the kernel has no heads of this width");
    return visit(Config<Q, Kv, 256>());
  };
  const auto with_query = [&]<typename Q>(Q query) {
    return kv == DType::kF8E4M3 ? with_types(query, __nv_fp8_e4m3()) : with_types(query, query);
  };
  return q == DType::kBF16 ? with_query(__nv_bfloat16()) : with_query(__half());
}

}  // namespace quire::cuda::native
