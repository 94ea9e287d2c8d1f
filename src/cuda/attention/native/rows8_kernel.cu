// Decode of at most 8 packed rows per request and KV head: one query token of a group of up to 8
// heads, or several tokens of smaller groups. One thread block per (split, KV head, request); its
// warps process steps of positions in turn, each with its own pipeline of copies. The splits of a
// request and KV head are one cluster or several (merge.cuh).
//
// The products are transposed, so that 8 rows fill the tensor cores' tiles: S^T = K Q^T and
// O^T = V^T P^T, with 16 positions or 16 dimensions as M and the 8 rows as N. A lane has row
// `group` of the operands Q and P, and rows 2 * quad and 2 * quad + 1 of the results.
//
// FP8 keys and values are widened to F16, two elements per instruction. The products with K may sum
// over the dimensions in any order. So the 4 elements that a lane holds in an mma step are 4
// consecutive elements of a row of K, and the same elements of Q. V is transposed in pairs of
// dimensions: a lane gets 2 dimensions of 2 positions in one register and sorts the 4 bytes by
// dimension.
//
// Above 256 columns, four warps are a team: they process the same positions, and each has a quarter
// of the columns. A warp's products with K are then a part of the logits, so in each step the warps
// add up theirs in shared memory. Each warp computes all weights.
#include "cuda/attention/native/decode.cuh"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/merge.cuh"
#include "cuda/attention/native/parts.cuh"
#include "cuda/attention/native/tile.cuh"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"

namespace quire::cuda::native {
namespace {

constexpr int kRows = 8;

template <class C>
struct Rows8 {
  static constexpr int kTeamWarps = C::kDim > 256 ? 4 : 1;
  // A warp's columns.
  using W = Config<typename C::Q, typename C::Kv, C::kDim / kTeamWarps>;
  // A step's keys and values take at most 8 KB per warp, or 16 KB if head_dim is 256 and the cache
  // has 16 bits. So two thread blocks fit in 227 KB of shared memory per SM.
  static constexpr int kWarps = W::kRowBytes == 512 ? 2 : 4;
  static constexpr int kTeams = kWarps / kTeamWarps;
  static_assert(kTeamWarps == 1 || kTeams == 1);  // barriers of a team are of the thread block
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kStages = 3;
  static constexpr int kStepUnits = W::kRowBytes <= 128 ? 2 : 1;
  static constexpr int kStepTokens = kStepUnits * kUnitTokens;
  static constexpr int kUnitBytes = kUnitTokens * W::kRowBytes;    // of keys or of values
  static constexpr int kStageBytes = 2 * kStepUnits * kUnitBytes;  // keys, then values
  static constexpr int kPipelineBytes = kWarps * kStages * kStageBytes;
  // At the end, the warps' rows reuse this memory.
  using Combined = CombinedRows<kTeams, kRows, C::kDim>;
  static constexpr int kSharedBytes =
      kPipelineBytes > Combined::kBytes ? kPipelineBytes : Combined::kBytes;
  static_assert(kSharedBytes % 16 == 0);
  // The inbox of a cluster's member has separate memory, because other members may send their rows
  // while this one still copies.
  using Inbox = Mailbox<kRows, C::kDim>;

  static constexpr int kSteps = W::kDim / 16;       // mma steps of a product with K
  static constexpr int kDimTiles = W::kDim / 16;    // mma tiles of a product with V
  static constexpr int kLoads = W::kRowPieces / 2;  // of four matrices, per unit of K or V
};

// A lane's place in the mma fragments.
struct Place {
  int group;  // 0 to 7
  int quad;   // 0 to 3
  __device__ Place() : group(threadIdx.x % 32 / 4), quad(threadIdx.x % 4) {}
};

// Transposes an 8x8 matrix of 16-bit elements whose rows the warp holds, two elements per lane.
__device__ inline uint32_t transpose(uint32_t x) {
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

// Widens the lower or upper two of four E4M3 numbers. The conversion instruction can read either
// half of a register; with widen(), the compiler would first shift the upper half.
__device__ inline uint32_t widen_low(uint32_t bytes) {
  return widen<__half>(bytes & 0xFFFF);
}
__device__ inline uint32_t widen_high(uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint32_t x;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, high;}"
      : "=r"(x)
      : "r"(bytes));
  return x;
#else
  return widen<__half>(bytes >> 16);
#endif
}

// A lane's share of the copies of one head's keys or values. In each unit, it copies the same piece
// of several rows.
template <class C>
class UnitCopies {
 public:
  __device__ UnitCopies(const PagedRows& rows, int lane)
      : row_(lane / C::kRowPieces),
        piece_(lane % C::kRowPieces),
        base_(rows.base + row_ * rows.token_stride + piece_ * 16),
        row_step_(kRowStep * rows.token_stride),
        in_row_(piece_ < rows.row_pieces) {}

  // Starts the copies of a unit. Positions outside `span` become zeros without being read: the page
  // table and the pages hold arbitrary data there, and NaN times a weight of zero is NaN.
  __device__ void start(uint32_t target, int64_t offset, int position, Span span) const {
    const char* source = base_ + offset;
    if (position >= span.first && position + kUnitTokens <= span.end) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        copy_async(target_of(target, i), source, in_row_);
        source += row_step_;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int at = position + row_ + i * kRowStep;
        copy_async(target_of(target, i), source, in_row_ && at >= span.first && at < span.end);
        source += row_step_;
      }
    }
  }

 private:
  static constexpr int kRowStep = 32 / C::kRowPieces;
  static constexpr int kCopies = kUnitTokens / kRowStep;

  // Returns target + swizzled(row_ + i * kRowStep, piece_). The addresses of one lane's rows differ
  // in some bits only.
  __device__ uint32_t target_of(uint32_t target, int i) const {
    constexpr int kMask = (C::kRowPieces < 8 ? C::kRowPieces : 8) - 1;
    const auto flipped = static_cast<uint32_t>((i * kRowStep & kMask) * 16);
    return ((target + swizzled<C::kRowPieces>(row_, piece_)) ^ flipped) +
           static_cast<uint32_t>(i * kRowStep * C::kRowBytes);
  }

  int row_, piece_;
  const char* base_;
  int64_t row_step_;
  bool in_row_;
};

// A warp's columns of the query rows as an mma operand, and the factors that convert products to
// logits.
template <class C>
struct QueryRows {
  using K = Rows8<C>;

  uint32_t b[K::kSteps][2];
  float inner[2];  // LogitScale::inner of the lane's rows of the results

  __device__ QueryRows(const Params& p, const Request& req, int kv_head, int num_rows,
                       int first_column, Place lane, const LogitScale& scale) {
    const int row = lane.group;
    const int token = token_of_row(p, req, row);
    const int64_t at =
        int64_t{req.first_token + token} * p.num_heads + kv_head * p.group + row - token * p.group;
    const auto* q = static_cast<const typename C::Q*>(p.q) + at * p.head_dim;
    const auto read = [&](int column) {
      const int d = first_column + column;
      return row < num_rows && d < p.head_dim ? *reinterpret_cast<const uint32_t*>(q + d) : 0U;
    };
#pragma unroll
    for (int step = 0; step < K::kSteps; ++step) {
      if constexpr (C::kIsFp8) {
        b[step][0] = read(step * 16 + lane.quad * 4);
        b[step][1] = read(step * 16 + lane.quad * 4 + 2);
      } else {
        b[step][0] = read(step * 16 + lane.quad * 2);
        b[step][1] = read(step * 16 + lane.quad * 2 + 8);
      }
    }
    inner[0] = inner[1] = scale.inner;
    if constexpr (C::kIsFp8 && std::is_same_v<typename C::Q, __nv_bfloat16>) {
      const int exponent = convert_to_half();
      const float undo = power_of_two(-exponent);
      inner[0] *= __shfl_sync(0xFFFFFFFFU, undo, lane.quad * 8);
      inner[1] *= __shfl_sync(0xFFFFFFFFU, undo, lane.quad * 8 + 4);
    }
  }

 private:
  __device__ static float power_of_two(int exponent) {
    return __int_as_float((exponent + 127) << 23);
  }

  // Converts a BF16 row to F16, scaled by a power of two that moves its largest element to
  // [2^15, 2^16), and returns the exponent. BF16 has 8 significant bits, so every element of at
  // least 2^-32 of the largest one is exact. A smaller element has an error of at most 2^-25 after
  // scaling, which is 2^-40 of the largest element: less than the rounding error of an F32 sum that
  // contains the largest element. Rows below 2^-111 are scaled by 2^126, so that all their elements
  // are exact.
  __device__ int convert_to_half() {
    uint32_t largest = 0;
#pragma unroll
    for (int step = 0; step < K::kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) largest = __vmaxu2(largest, b[step][i] & 0x7FFF7FFFU);
    }
    largest = __vmaxu2(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, 1));
    largest = __vmaxu2(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, 2));
    const int biased = static_cast<int>(max(largest & 0xFFFF, largest >> 16) >> 7);
    const int exponent = min(127 + 15 - biased, 126);
    const float factor = power_of_two(exponent);
#pragma unroll
    for (int step = 0; step < K::kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float low = __uint_as_float(b[step][i] << 16);
        const float high = __uint_as_float(b[step][i] & 0xFFFF0000U);
        b[step][i] = pack<__half>(low * factor, high * factor);
      }
    }
    return exponent;
  }
};

// The accumulators of a warp's columns of 8 rows.
template <class C>
struct WarpRows8 {
  using K = Rows8<C>;

  float o[K::kDimTiles][4] = {};  // [0] and [2] belong to the lane's first row: see dim()
  float max[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0F, 0.0F};  // this lane's share until sum_up()
  Span visible[2];
  Span visible_to_all;

  // The warp's column of o[tile][2 * half] and o[tile][2 * half + 1].
  __device__ static int column(int tile, int half, Place lane) {
    return tile * 16 + (C::kIsFp8 ? lane.group * 2 + half : lane.group + half * 8);
  }

  // add_up(s) adds the products of the team's other warps.
  template <class AddUp>
  __device__ void attend(const QueryRows<C>& query, float softcap, uint32_t stage, int first,
                         Place lane, AddUp add_up) {
    float s[K::kStepUnits][4] = {};
    float odd[4] = {};  // sums of odd loads with one unit; halves the chain of dependent products
    const int lane_id = static_cast<int>(threadIdx.x) % 32;
    // Load i reads pieces 2 * i and 2 * i + 1 of 16 positions. They are at `loads` ^ 32 * i,
    // because stages are aligned to the size of a row.
    const uint32_t loads = stage + swizzled<C::kRowPieces>(lane_id % 16, lane_id / 16);
#pragma unroll
    for (int i = 0; i < K::kLoads; ++i) {
#pragma unroll
      for (int u = 0; u < K::kStepUnits; ++u) {
        multiply_keys(K::kStepUnits == 1 && i % 2 == 1 ? odd : s[u], query, i,
                      load_matrices((loads ^ i * 32) + u * K::kUnitBytes));
      }
    }
    if constexpr (K::kStepUnits == 1) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[0][i] += odd[i];
    }
#pragma unroll
    for (int u = 0; u < K::kStepUnits; ++u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[u][i] *= query.inner[i % 2];
    }
    add_up(s);
    cap_and_mask(s, softcap, first, lane);
    weigh(s);
#pragma unroll
    for (int u = 0; u < K::kStepUnits; ++u) {
      const uint32_t p0 = transpose(pack<typename C::P>(s[u][0], s[u][1]));
      const uint32_t p1 = transpose(pack<typename C::P>(s[u][2], s[u][3]));
#pragma unroll
      for (int i = 0; i < K::kLoads; ++i) {
        multiply_values(i, load_transposed((loads ^ i * 32) + (K::kStepUnits + u) * K::kUnitBytes),
                        p0, p1);
      }
    }
  }

  __device__ void sum_up() {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = sum_of_row<4, 32>(sum[r]);
  }

  // Writes the warp's columns, from first_column on, of its team's rows.
  template <class Combined>
  __device__ void put(const Combined& combined, int team, int first_column, Place lane) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = team * kRows + lane.quad * 2 + r;
      float* o_row = combined.o + row * Combined::kRowFloats + first_column;
#pragma unroll
      for (int tile = 0; tile < K::kDimTiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          o_row[column(tile, half, lane)] = o[tile][2 * half + r];
        }
      }
      if (lane.group == 0 && first_column == 0) {
        combined.max[row] = max[r];
        combined.sum[row] = sum[r];
      }
    }
  }

 private:
  __device__ static void multiply_keys(float (&s)[4], const QueryRows<C>& query, int i, uint4 k) {
    if constexpr (C::kIsFp8) {
      const uint32_t first[4] = {widen_low(k.x), widen_low(k.y), widen_high(k.x), widen_high(k.y)};
      const uint32_t second[4] = {widen_low(k.z), widen_low(k.w), widen_high(k.z), widen_high(k.w)};
      mma<__half>(s, first, query.b[2 * i][0], query.b[2 * i][1]);
      mma<__half>(s, second, query.b[2 * i + 1][0], query.b[2 * i + 1][1]);
    } else {
      const uint32_t a[4] = {k.x, k.y, k.z, k.w};
      mma<typename C::Q>(s, a, query.b[i][0], query.b[i][1]);
    }
  }

  __device__ void multiply_values(int i, uint4 v, uint32_t p0, uint32_t p1) {
    if constexpr (C::kIsFp8) {
      constexpr uint32_t kByDimension = 0x3120;
      const uint32_t words[4] = {
          __byte_perm(v.x, 0, kByDimension), __byte_perm(v.y, 0, kByDimension),
          __byte_perm(v.z, 0, kByDimension), __byte_perm(v.w, 0, kByDimension)};
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint32_t a[4] = {widen_low(words[2 * j]), widen_high(words[2 * j]),
                               widen_low(words[2 * j + 1]), widen_high(words[2 * j + 1])};
        mma<__half>(o[2 * i + j], a, p0, p1);
      }
    } else {
      const uint32_t a[4] = {v.x, v.z, v.y, v.w};
      mma<typename C::Q>(o[i], a, p0, p1);
    }
  }

  __device__ void cap_and_mask(float (&s)[K::kStepUnits][4], float softcap, int first,
                               Place lane) const {
    if (softcap > 0.0F) {
#pragma unroll
      for (int u = 0; u < K::kStepUnits; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[u][i] = softcap * tanhf(s[u][i]);
      }
    }
    if (first >= visible_to_all.first && first + K::kStepTokens <= visible_to_all.end) return;
#pragma unroll
    for (int u = 0; u < K::kStepUnits; ++u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int position = first + u * kUnitTokens + lane.group + i / 2 * 8;
        const Span span = visible[i % 2];
        if (position < span.first || position >= span.end) s[u][i] = -INFINITY;
      }
    }
  }

  // Converts logits to weights.
  __device__ void weigh(float (&s)[K::kStepUnits][4]) {
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int u = 0; u < K::kStepUnits; ++u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) top[i % 2] = fmaxf(top[i % 2], s[u][i]);
    }
    const bool rises = top[0] > max[0] + kMaxLag || top[1] > max[1] + kMaxLag;
    if (__any_sync(0xFFFFFFFFU, rises)) raise_max(top);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float origin = max[r] == -INFINITY ? 0.0F : max[r];  // no positions: all weights are 0
#pragma unroll
      for (int u = 0; u < K::kStepUnits; ++u) {
#pragma unroll
        for (int i = r; i < 4; i += 2) {
          s[u][i] = fast_exp2(s[u][i] - origin);
          sum[r] += s[u][i];
        }
      }
    }
  }

  // Sets each row's maximum to its largest logit so far, and rescales the accumulators.
  __device__ void raise_max(const float (&top)[2]) {
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float of_row = fmaxf(max[r], top[r]);
      of_row = max_of_row<4, 32>(of_row);
      shrink[r] = of_row == -INFINITY ? 1.0F : fast_exp2(max[r] - of_row);
      max[r] = of_row;
      sum[r] *= shrink[r];
    }
#pragma unroll
    for (int tile = 0; tile < K::kDimTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o[tile][i] *= shrink[i % 2];
    }
  }
};

// Adds up the sums of the thread block's warps, which have different columns of the same positions.
// `stage` is the first warp's stage. The keys that the warps have read there make place for the
// sums, so no warp may start copies to the stage before the next barrier of the thread block. All
// warps get the same numbers, because they add in the same order.
template <class K>
__device__ inline void add_up_columns(float (&s)[K::kStepUnits][4], unsigned char* stage, int warp,
                                      int lane_id) {
  const auto sums = [&](int of_warp, int unit) -> float4& {
    return reinterpret_cast<float4*>(stage +
                                     of_warp * K::kStages * K::kStageBytes)[unit * 32 + lane_id];
  };
  __syncwarp();  // all lanes have read the keys
#pragma unroll
  for (int u = 0; u < K::kStepUnits; ++u) {
    sums(warp, u) = make_float4(s[u][0], s[u][1], s[u][2], s[u][3]);
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < K::kStepUnits; ++u) {
    float4 sum = sums(0, u);
#pragma unroll
    for (int w = 1; w < K::kTeamWarps; ++w) add_weighted(sum, 1.0F, sums(w, u));
    s[u][0] = sum.x, s[u][1] = sum.y, s[u][2] = sum.z, s[u][3] = sum.w;
  }
}

// Before the first wait_for_previous_kernel(), the kernel reads lengths and the page table, which
// the kernels of cuda/step/ write without letting their successors start early. It also reads the
// settled keys and values, which are in the first `settled_len` positions.
template <class C>
__device__ __forceinline__ void attend_part(const Params& p, const RequestPart& work,
                                            const Request& req, int settled_len) {
  using K = Rows8<C>;
  using W = typename K::W;
  extern __shared__ __align__(512) unsigned char rows8_shared[];  // aligned to the widest row
  const int kv_head = static_cast<int>(blockIdx.y);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane_id = static_cast<int>(threadIdx.x) % 32;
  const Place lane;
  const int num_rows = req.q_len * p.group;
  const Span of_first = visible_span(p, req, 0);
  const Span of_last = visible_span(p, req, req.q_len - 1);
  const Span all = {of_first.first, of_last.end};
  const Parts<C> parts(all, work.num_parts * p.cluster, p.cluster > 1);
  const bool one_cluster = p.cluster_shift == kOneCluster;
  const int rank = static_cast<int>(one_cluster ? blockIdx.x : blockIdx.x & (p.cluster - 1));
  const int num_clusters = one_cluster ? 1 : (parts.count + p.cluster - 1) >> p.cluster_shift;
  // With several clusters, all members merge, even those without positions. So do they if the
  // cluster has other work after this, because a barrier waits for all that have not ended.
  const bool all_merge = num_clusters > 1 || (p.work != nullptr && parts.count > 1);
  const int num_members = all_merge ? p.cluster : parts.count;
  // The first split of a request always continues to the wait, so that the next kernel's wait
  // covers all earlier kernels.
  if (work.part >= num_clusters || rank >= num_members) return;
  if (num_members > 1) start_in_cluster();
  const Span span = parts.of(work.part * p.cluster + rank);

  const int team = warp / K::kTeamWarps;
  const int first_column = warp % K::kTeamWarps * W::kDim;
  const int first = (span.first & ~(kUnitTokens - 1)) + team * K::kStepTokens;
  constexpr int kStride = K::kTeams * K::kStepTokens;
  const int num_steps = first < span.end ? (span.end - first + kStride - 1) / kStride : 0;
  const PagedRows keys = PagedRows::keys<W>(p, kv_head, first_column);
  const PagedRows values = PagedRows::values<W>(p, kv_head, first_column);
  const UnitCopies<W> key_copies(keys, lane_id);
  const UnitCopies<W> value_copies(values, lane_id);
  UnitReader<K::kStepUnits> units(req.pages, p.page_shift, keys, values, first, kStride, span.end);
  const uint32_t pipeline =
      shared_address(rows8_shared) + static_cast<uint32_t>(warp * K::kStages * K::kStageBytes);
  const auto start_step = [&](int step, int stage_index) {
    if (step < num_steps) {
      const uint32_t stage = pipeline + static_cast<uint32_t>(stage_index * K::kStageBytes);
#pragma unroll
      for (int u = 0; u < K::kStepUnits; ++u) {
        const int position = first + step * kStride + u * kUnitTokens;
        const UnitOffsets at = units.offsets(step * K::kStepUnits + u);
        key_copies.start(stage + u * K::kUnitBytes, at.k, position, span);
        value_copies.start(stage + (K::kStepUnits + u) * K::kUnitBytes, at.v, position, span);
      }
    }
    commit_copies();
  };
  // The number of the warp's first steps, up to one per stage, whose positions are all settled.
  const int num_settled = settled_len - first - K::kStepTokens;  // after the end of step 0
  const int num_early = num_settled < 0 ? 0 : min(K::kStages, num_settled / kStride + 1);
#pragma unroll 1
  for (int step = 0; step < num_early; ++step) start_step(step, step);
  wait_for_previous_kernel();
#pragma unroll 1
  for (int step = num_early; step < K::kStages; ++step) start_step(step, step);

  const LogitScale scale(p);
  const QueryRows<W> query(p, req, kv_head, num_rows, first_column, lane, scale);
  WarpRows8<W> rows;
  rows.visible_to_all = {of_last.first, of_first.end};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    // Rows beyond the last use its positions; their results are not read.
    const int row = min(lane.quad * 2 + r, num_rows - 1);
    rows.visible[r] = visible_span(p, req, token_of_row(p, req, row));
  }

  int stage = 0;
  for (int step = 0; step < num_steps; ++step) {
    wait_for_copies<K::kStages - 1>();
    __syncwarp();
    const auto add_up = [&](float(&s)[K::kStepUnits][4]) {
      if constexpr (K::kTeamWarps > 1) {
        add_up_columns<K>(s, rows8_shared + stage * K::kStageBytes, warp, lane_id);
      }
    };
    rows.attend(query, scale.softcap, pipeline + static_cast<uint32_t>(stage * K::kStageBytes),
                first + step * kStride, lane, add_up);
    if constexpr (K::kTeamWarps > 1) {
      __syncthreads();
    } else {
      __syncwarp();
    }
    start_step(step + K::kStages, stage);
    stage = stage + 1 == K::kStages ? 0 : stage + 1;
  }
  wait_for_copies<0>();
  __syncthreads();  // the pipelines' memory is free
  rows.sum_up();
  const typename K::Combined combined(rows8_shared);
  rows.put(combined, team, first_column, lane);
  __syncthreads();
  const Share<C::kDim> share(num_rows, rank, num_members);
  const PartialRows partials(p, work.first_cluster, kv_head);
  if (num_members == 1) {
    const auto partial_of = [&](int row) { return partials.of(work.part, row); };
    write_combined_rows<typename C::Q>(p, req, combined, num_rows, kv_head, partial_of,
                                       num_clusters > 1);
  } else {
    const auto& inbox = *reinterpret_cast<typename K::Inbox*>(rows8_shared + K::kSharedBytes);
    merge_in_cluster<typename C::Q>(p, req, combined, inbox, share, num_rows, kv_head, rank,
                                    num_members, partials, work.part, num_clusters > 1);
  }
  if (num_clusters == 1) return;
  const int64_t merged_idx = int64_t{work.req_idx} * gridDim.y + kv_head;
  uint32_t* counter = p.counters + merged_idx * kMaxCluster + rank;
  if (num_members == 1 && num_clusters <= kMaxSplits) {
    merge_rows_if_last<typename C::Q>(p, req, num_rows, kv_head, partials, counter, num_clusters);
  } else {
    merge_if_last<typename C::Q>(p, req, share, kv_head, partials, counter, num_clusters);
  }
}

template <class C>
__global__ __launch_bounds__(Rows8<C>::kThreads, 2) void rows8_kernel(const Params p) {
  for_each_part(p, [&](const RequestPart& work, const Request& req, int settled_len) {
    attend_part<C>(p, work, req, settled_len);
  });
}

}  // namespace

void launch_rows8(CudaStream& stream, const Params& p, DType kv, int padded_dim) {
  const dim3 grid(static_cast<unsigned>(p.num_splits), static_cast<unsigned>(p.num_heads / p.group),
                  static_cast<unsigned>(p.num_reqs));
  with_config<kMaxWideDim>(p.q_dtype, kv, padded_dim, [&]<class C>(C) {
    using K = Rows8<C>;
    QUIRE_LAUNCH(stream, rows8_kernel<C>,
                 (LaunchShape{.grid = grid,
                              .block = K::kThreads,
                              .shared_bytes =
                                  K::kSharedBytes + (p.cluster > 1 ? sizeof(typename K::Inbox) : 0),
                              .overlap_start = true,
                              .cluster = static_cast<unsigned>(p.cluster)}),
                 p);
  });
}

}  // namespace quire::cuda::native
