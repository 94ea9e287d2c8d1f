// Decode over a latent cache for few rows per request, in tiles of 16 packed rows, which are the M
// dimension of one mma instruction. FlashInfer's kernel always multiplies 64 rows, and does not
// load the next tile while it completes the current one.
//
// One thread block per SM processes its worker's list of parts (LatentWork). Four warps copy the
// parts' queries and positions into a ring buffer in shared memory, by bulk copies. They run ahead,
// also past the ends of parts, until the ring is full. Eight warps compute steps of 32 positions.
// Each warp multiplies one half of the elements of all 16 queries by 8 positions. After a barrier
// it converts two rows' logits to weights. After the next step's barrier it adds the positions to
// 64 columns of the output, so that the tensor cores are busy while weights are computed. Logits
// and weights are double-buffered.
//
// At the end of their lists, the thread blocks that computed parts of a tile merge the parts; each
// merges a share of the rows.
#include "cuda/attention/flashinfer/latent_kernel.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"

namespace quire::cuda::flashinfer_backend {
namespace {

constexpr int kRows = kLatentDecodeRows;
constexpr int kStep = kLatentDecodeTilePositions;
constexpr int kKeyDim = kLatentDim + kLatentRopeDim;
constexpr int kWarps = 8;  // that compute
constexpr int kComputeThreads = kWarps * 32;
constexpr int kCopyWarps = 4;
constexpr int kCopyRows = kStep / kCopyWarps;
constexpr int kCopyQueries = kRows / kCopyWarps;
constexpr int kThreads = kComputeThreads + kCopyWarps * 32;
constexpr int kKeyTiles = kStep / 8;                // of 8 positions
constexpr int kHalves = kWarps / kKeyTiles;         // of the queries' elements
constexpr int kHalfSteps = kKeyDim / kHalves / 16;  // mma steps over a half
constexpr int kWarpDim = kLatentDim / kWarps;       // columns of the output per warp
constexpr int kColumnTiles = kWarpDim / 8;
constexpr int kMaxShares = 32;  // of the merge of a tile
constexpr float kLog2E = 1.4426950408889634F;

// The merge of a tile's parts is divided into shares, one per thread block that computed one of the
// first parts. A thread block that has completed its part waits for the other parts, but only for a
// limited time, because the thread blocks may not all be resident. After that time it abandons its
// share, and the thread block that completes the last part merges that share too. So no thread
// block depends on another's progress.
//
// LatentArrays::arrivals has one counter per split tile. Its lower half counts the completed parts,
// over all launches since the plan was made. Bit i of its upper half is set if share i is
// abandoned. The thread block that merges abandoned shares clears their bits.
struct Arrival {
  unsigned long long* counter;
  uint32_t target;     // the count at which all parts are complete
  uint32_t own;        // this thread block's share, as a bit; 0: none
  uint32_t abandoned;  // shares, as bits
  bool is_last;

  // Counts a part as complete. One thread calls this, after a barrier and a fence.
  __device__ void arrive(const LatentCall& call, const LatentWork& work) {
    const auto num_parts = static_cast<uint32_t>(work.num_parts);
    counter = call.arrays.arrivals + work.cut;
    own = work.part < kMaxShares ? 1U << work.part : 0;
    const unsigned long long before = atomicAdd(counter, 1ULL);
    target = (static_cast<uint32_t>(before) / num_parts + 1) * num_parts;
    is_last = static_cast<uint32_t>(before) + 1 == target;
    abandoned = is_last ? static_cast<uint32_t>(before >> 32) : 0;
    if (abandoned != 0) clear(abandoned);
    if (is_last) __threadfence();
  }

  // Waits for the other parts. Returns the shares to merge, as bits.
  __device__ uint32_t shares() const {
    if (!is_last && own != 0 && !wait() && abandon()) return 0;
    return own | abandoned;
  }

 private:
  static constexpr int kMaxPolls = 100;  // several times 10 us

  __device__ void clear(uint32_t shares) const {
    atomicAnd(counter, ~(static_cast<unsigned long long>(shares) << 32));
  }
  __device__ bool wait() const {
    for (int i = 0; i < kMaxPolls; ++i) {
      unsigned long long now = 0;
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(counter) : "memory");
      if (static_cast<uint32_t>(now) >= target) return true;
    }
    return false;
  }
  // Returns false if the last part was completed in the meantime.
  __device__ bool abandon() const {
    const unsigned long long before = atomicOr(counter, static_cast<unsigned long long>(own) << 32);
    if (static_cast<uint32_t>(before) < target) return true;
    clear(own);
    __threadfence();
    return false;
  }
};

// A part of a split tile, which this thread block has computed.
struct Cut {
  LatentWork work;
  Arrival arrival;
};

// A part, limited to the true length of its request.
struct Part {
  LatentWork work;
  int first_end;  // end of the positions that the request's first query attends to
  int kv_end;     // of the part
  int num_steps;

  __device__ Part(const LatentCall& call, const LatentWork& planned, int seq_len)
      : work(planned), first_end(seq_len - planned.q_len + 1) {
    kv_end = row_end(call, work.num_rows - 1);
    num_steps = kv_end > work.kv_start ? (kv_end - work.kv_start + kStep - 1) / kStep : 0;
  }

  // The end of the part's positions that a row of the tile attends to.
  __device__ int row_end(const LatentCall& call, int row) const {
    return min(work.kv_end, first_end + (work.row + row) / call.num_heads);
  }
};

// Rows are padded, so that eight rows of a matrix, or four rows of two logits per thread, are in
// different banks.
template <typename Q, typename Kv>
struct Shared {
  static constexpr int kCacheBytes = kKeyDim * static_cast<int>(sizeof(Kv));
  static constexpr int kQueryBytes = kKeyDim * static_cast<int>(sizeof(Q));
  static constexpr int kStages = sizeof(Kv) == 1 ? 10 : 5;
  // The type of the softmax's weights: F16 holds E4M3 exactly.
  using P = std::conditional_t<sizeof(Kv) == 1, __half, Q>;

  alignas(128) unsigned char cache[kStages][kStep][kCacheBytes + 16];
  unsigned char query[kRows][kQueryBytes + 16];
  union {
    struct {
      float logits[2][kHalves][kRows][kStep + 8];
      P weights[2][kRows][kStep + 8];
      float shrink[2][kRows];  // per row: the factors by which a step scales the sums of earlier
                               // steps
    };
    float part_weights[kWarps][kMaxLatentParts];  // while a tile's parts are merged
  };
  // A warp's columns of 8 rows of a part, staged for coalesced stores.
  alignas(16) Q results[kWarps][kRows / 2][kWarpDim + 8];
  float factors[2][kRows];  // from the sums of a part to its results; parts alternate
  Cut cuts[2];
  uint32_t shares;  // shares of a tile that this thread block merges, as bits
  Mbarrier filled[kStages];
  Mbarrier freed[kStages];
  Mbarrier query_filled;  // the queries have arrived, and the part is set
  Mbarrier query_freed;
  Part parts[2];  // double-buffered; a part is in use until the next part's queries are freed
};

// A barrier of the warps that compute.
__device__ __forceinline__ void compute_barrier() {
  asm volatile("bar.sync 1, %0;" ::"n"(kComputeThreads) : "memory");
}

// Selects one lane in a way that lets the compiler assume a single thread in the branch.
__device__ __forceinline__ bool is_elected() {
  uint32_t elected = 0;
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xFFFFFFFF;\n"
      "selp.u32 %0, 1, 0, one;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

// One warp's rows in each step of a part: kCopyRows positions, all in one page. The page ids of the
// first steps are loaded before the true length is known.
template <typename Kv>
class StepRows {
 public:
  __device__ StepRows(const LatentCall& call, const LatentWork& work, int warp)
      : call_(&call),
        pages_(call.block_table + int64_t{work.req} * call.max_pages),
        kv_start_(work.kv_start),
        row_(warp * kCopyRows) {
    load_pages(0);
  }
  __device__ void set_end(int kv_end) { kv_end_ = kv_end; }

  // Moves to a step. The whole warp calls this, with steps in ascending order.
  __device__ __forceinline__ void set(int step) {
    if (step % 32 == 0 && step > 0) load_pages(step);
    const int first = kv_start_ + step * kStep;
    int position = first + row_;
    int32_t page = __shfl_sync(0xFFFFFFFFU, page_ids_, step % 32);
    if (position >= kv_end_) {
      position = first;
      page = pages_[first >> call_->page_shift];
    }
    source_ = static_cast<const Kv*>(call_->cache) + int64_t{page} * call_->page_stride +
              int64_t{position & (call_->page_size - 1)} * call_->token_stride;
    last_ = min(kCopyRows, kv_end_ - position) - 1;
  }
  // The address of a row. Rows beyond the part are copies of earlier rows: their weights are 0, but
  // stale shared memory may contain NaN, and NaN times zero is NaN.
  __device__ __forceinline__ const Kv* row(int i) const {
    return source_ + static_cast<uint32_t>(min(i, last_)) * call_->token_stride;
  }

 private:
  // Loads the page ids of 32 steps, one per lane.
  __device__ void load_pages(int step) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int position = kv_start_ + (step + lane) * kStep + row_;
    page_ids_ = pages_[min(position >> call_->page_shift, call_->max_pages - 1)];
  }

  const LatentCall* call_;
  const int32_t* pages_;
  int kv_start_, row_;
  int kv_end_ = 0;
  int32_t page_ids_;
  const Kv* source_ = nullptr;
  int last_ = 0;
};

// Prefetches this warp's rows of a part's first steps into the L2 cache. The previous kernel may
// still write some of these rows; the L2 cache is coherent, so the prefetch is harmless.
template <typename Q, typename Kv>
__device__ void prefetch_part(const Part& part, StepRows<Kv> rows) {
  using S = Shared<Q, Kv>;
  constexpr int kLine = 128;
  constexpr int kRowLanes = 32 / kCopyRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  rows.set_end(part.kv_end);
  for (int step = 0; step < min(part.num_steps, S::kStages); ++step) {
    rows.set(step);
    const auto* const row = reinterpret_cast<const char*>(rows.row(lane / kRowLanes));
    for (int at = lane % kRowLanes * kLine; at < S::kCacheBytes; at += kRowLanes * kLine) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(row + at));
    }
  }
}

// Starts the copies of a warp's share of a part's queries.
template <typename Q, typename Kv>
__device__ __forceinline__ void copy_queries(const LatentCall& call, Shared<Q, Kv>& shared,
                                             const Part& part, int warp) {
  using S = Shared<Q, Kv>;
  const int first = warp * kCopyQueries;
  const int count = part.num_steps > 0 ? max(0, min(kCopyQueries, part.work.num_rows - first)) : 0;
  const Q* const source =
      static_cast<const Q*>(call.q) + int64_t{part.work.out_row + first} * kKeyDim;
  shared.query_filled.arrive_expecting(static_cast<uint32_t>(count * S::kQueryBytes));
  for (int i = 0; i < count; ++i) {
    copy_bulk_evict_first(shared.query[first + i], source + i * kKeyDim, S::kQueryBytes,
                          shared.query_filled);
  }
}

// The code of a copying warp, which copies a share of the queries and of the rows of each step.
// While it copies one part, it loads the work item, length and page ids of the next. The first
// part's work item is at a fixed address, because a load that waits for worker_start takes as long
// as a step.
template <typename Q, typename Kv>
__device__ void copy_parts(const LatentCall& call, Shared<Q, Kv>& shared, int first, int end) {
  using S = Shared<Q, Kv>;
  const int warp = (static_cast<int>(threadIdx.x) - kComputeThreads) / 32;
  LatentWork work = call.arrays.first_works[blockIdx.x];
  if (first == end) return wait_for_previous_kernel();
  int seq_len = call.seq_lens[work.req];
  StepRows<Kv> rows(call, work, warp);
  prefetch_part<Q, Kv>(Part(call, work, seq_len), rows);
  wait_for_previous_kernel();
  RingPosition at;
  bool is_first_round = true;
  for (int idx = first; idx < end; ++idx) {
    const Part part(call, work, seq_len);
    const uint32_t parity = static_cast<uint32_t>(idx - first) & 1;
    if (idx > first) shared.query_freed.wait(parity ^ 1);
    if (is_elected()) {
      if (warp == 0) shared.parts[parity] = part;
      copy_queries(call, shared, part, warp);
    }
    StepRows<Kv> own_rows = rows;
    own_rows.set_end(part.kv_end);
    const bool is_last = idx + 1 == end;
    if (!is_last) work = call.arrays.works[idx + 1];
    const auto load_next = [&] {
      if (is_last) return;
      seq_len = call.seq_lens[work.req];
      rows = StepRows<Kv>(call, work, warp);
    };
    for (int step = 0; step < part.num_steps; ++step) {
      own_rows.set(step);
      if (!is_first_round) shared.freed[at.stage].wait(at.parity ^ 1);
      if (is_elected()) {
        Mbarrier& filled = shared.filled[at.stage];
        filled.arrive_expecting(kCopyRows * S::kCacheBytes);
#pragma unroll
        for (int i = 0; i < kCopyRows; ++i) {
          copy_bulk_evict_first(shared.cache[at.stage][warp * kCopyRows + i], own_rows.row(i),
                                S::kCacheBytes, filled);
        }
      }
      at.advance(S::kStages);
      if (at.stage == 0) is_first_round = false;
      if (step == 0) load_next();
    }
    if (part.num_steps == 0) load_next();
  }
}

// One warp's half of the queries' elements, as mma operands. With an FP8 cache, the elements of a
// step are in the order of load_keys().
template <typename Q, typename Kv>
__device__ __forceinline__ void load_queries(const Shared<Q, Kv>& shared, int half,
                                             uint32_t (&q)[kHalfSteps][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 0; step < kHalfSteps; ++step) {
    const int first = (half * kHalfSteps + step) * 16;
    if constexpr (sizeof(Kv) == 1) {
      const int at = (first + lane % 4 * 4) * static_cast<int>(sizeof(Q));
      const auto upper = *reinterpret_cast<const uint2*>(&shared.query[lane / 4][at]);
      const auto lower = *reinterpret_cast<const uint2*>(&shared.query[lane / 4 + 8][at]);
      q[step][0] = upper.x;
      q[step][1] = lower.x;
      q[step][2] = upper.y;
      q[step][3] = lower.y;
    } else {
      const int at = (first + lane / 16 * 8) * static_cast<int>(sizeof(Q));
      const uint4 x = load_matrices(shared_address(&shared.query[lane % 16][at]));
      q[step][0] = x.x;
      q[step][1] = x.y;
      q[step][2] = x.z;
      q[step][3] = x.w;
    }
  }
}

// The mma operands of two steps: 8 positions and 32 elements of the cache.
template <typename Q, typename Kv>
__device__ __forceinline__ uint4 load_keys(uint32_t rows, int row_bytes, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (sizeof(Kv) == 1) {
    const uint2 x = load_two_matrices(
        rows + static_cast<uint32_t>(lane % 8 * row_bytes + first + lane / 8 % 2 * 16));
    return {widen<Q>(x.x & 0xFFFF), widen<Q>(x.x >> 16), widen<Q>(x.y & 0xFFFF),
            widen<Q>(x.y >> 16)};
  } else {
    return load_matrices(rows +
                         static_cast<uint32_t>(lane % 8 * row_bytes + (first + lane / 8 * 8) * 2));
  }
}

// Multiplies a warp's half of the queries' elements by its 8 positions, and stores the products.
template <typename Q, typename Kv>
__device__ __forceinline__ void multiply_keys(Shared<Q, Kv>& shared, int stage, int buffer,
                                              const uint32_t (&q)[kHalfSteps][4]) {
  constexpr int kRowBytes = sizeof(shared.cache[0][0]);
  constexpr int kSums = 4;  // so that consecutive mma instructions are independent
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key_tile = warp % kKeyTiles;
  const int half = warp / kKeyTiles;
  const uint32_t rows = shared_address(shared.cache[stage][key_tile * 8]);
  float s[kSums][4] = {};
#pragma unroll
  for (int step = 0; step < kHalfSteps; step += 2) {
    const uint4 k = load_keys<Q, Kv>(rows, kRowBytes, (half * kHalfSteps + step) * 16);
    mma<Q>(s[step % kSums], q[step], k.x, k.y);
    mma<Q>(s[(step + 1) % kSums], q[step + 1], k.z, k.w);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) s[0][i] = (s[0][i] + s[1][i]) + (s[2][i] + s[3][i]);
  auto& logits = shared.logits[buffer][half];
  const int column = key_tile * 8 + lane % 4 * 2;
  *reinterpret_cast<float2*>(&logits[lane / 4][column]) = {s[0][0], s[0][1]};
  *reinterpret_cast<float2*>(&logits[lane / 4 + 8][column]) = {s[0][2], s[0][3]};
}

// The softmax of two rows per warp: 16 lanes share a row, with two positions of each step per lane.
template <typename Q, typename Kv>
struct Softmax {
  float max = -INFINITY;  // log2 units
  float sum = 0.0F;       // this lane's share
  int end;                // of the positions that the row attends to
  // These hold a step's values from read() to write().
  float2 logits;
  float top;

  __device__ static int row() { return static_cast<int>(threadIdx.x) / 16; }

  // Reads a step's logits and updates the maximum. The step's first position is `first`.
  __device__ __forceinline__ void read(const Shared<Q, Kv>& shared, int buffer, int first,
                                       float scale) {
    const int column = static_cast<int>(threadIdx.x) % 16 * 2;
    logits = {0.0F, 0.0F};
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const auto part =
          *reinterpret_cast<const float2*>(&shared.logits[buffer][half][row()][column]);
      logits.x += part.x;
      logits.y += part.y;
    }
    logits.x = first + column < end ? logits.x * scale : -INFINITY;
    logits.y = first + column + 1 < end ? logits.y * scale : -INFINITY;
    top = fmaxf(max, fmaxf(logits.x, logits.y));
#pragma unroll
    for (int distance = 8; distance > 0; distance /= 2) {
      top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, distance));
    }
  }

  // Converts the logits to weights.
  __device__ __forceinline__ void write(Shared<Q, Kv>& shared, int buffer) {
    const int column = static_cast<int>(threadIdx.x) % 16 * 2;
    const float origin = top == -INFINITY ? 0.0F : top;  // no positions yet: all weights are 0
    const float shrink = fast_exp2(max - origin);
    const float2 weights = {fast_exp2(logits.x - origin), fast_exp2(logits.y - origin)};
    max = top;
    sum = sum * shrink + weights.x + weights.y;
    *reinterpret_cast<uint32_t*>(&shared.weights[buffer][row()][column]) =
        pack<typename Shared<Q, Kv>::P>(weights.x, weights.y);
    if (column == 0) shared.shrink[buffer][row()] = shrink;
  }

  // Stores the factor that converts the row's sums to its results, and the log-sum-exp of a partial
  // result.
  __device__ __forceinline__ void finish(const LatentCall& call, const LatentWork& work,
                                         float cache_scale, float (&factors)[kRows]) {
    sum = warp_sum(sum, 16);
    if (threadIdx.x % 16 != 0) return;
    factors[row()] = sum > 0.0F ? __fdividef(cache_scale, sum) : 0.0F;
    if (work.partial < 0 || row() >= work.num_rows) return;
    call.partial_lse[work.partial + row()] = max + __log2f(sum);
  }
};

// A warp's columns of 16 rows. A thread holds rows lane / 4 and lane / 4 + 8, and two columns of
// each column tile: o[j][0..1] belong to the first row, o[j][2..3] to the second.
template <typename Q, typename Kv>
struct Columns {
  static constexpr bool kIsFp8 = sizeof(Kv) == 1;
  static constexpr int kLoads = kWarpDim * static_cast<int>(sizeof(Kv)) / 32;  // per 16 positions
  using P = typename Shared<Q, Kv>::P;

  float o[kColumnTiles][4] = {};

  // Adds 16 of a step's positions, multiplied by their weights.
  __device__ __forceinline__ void add(const Shared<Q, Kv>& shared, int stage, int buffer,
                                      int first) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int at = warp * kWarpDim * static_cast<int>(sizeof(Kv)) + lane / 16 * 16;
    const uint32_t address = shared_address(&shared.cache[stage][first + lane % 16][at]);
    const uint4 x =
        load_matrices(shared_address(&shared.weights[buffer][lane % 16][first + lane / 16 * 8]));
    const uint32_t p[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const uint4 v = load_transposed(address + static_cast<uint32_t>(i * 32));
      if constexpr (kIsFp8) {
        add_pairs(4 * i, p, v.x, v.y);
        add_pairs(4 * i + 2, p, v.z, v.w);
      } else {
        mma<P>(o[2 * i], p, v.x, v.y);
        mma<P>(o[2 * i + 1], p, v.z, v.w);
      }
    }
  }

  // Rescales the sums to the maxima of a step.
  __device__ __forceinline__ void shrink(const Shared<Q, Kv>& shared, int buffer) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float upper = shared.shrink[buffer][lane / 4];
    const float lower = shared.shrink[buffer][lane / 4 + 8];
    if (!__any_sync(0xFFFFFFFFU, upper != 1.0F || lower != 1.0F)) return;
#pragma unroll
    for (int j = 0; j < kColumnTiles; ++j) {
      o[j][0] *= upper;
      o[j][1] *= upper;
      o[j][2] *= lower;
      o[j][3] *= lower;
    }
  }

  // Stores this thread's columns of one of its rows.
  __device__ __forceinline__ void store(Q (&row)[kWarpDim + 8], int r, float factor) const {
    const int quad = static_cast<int>(threadIdx.x) % 4;
    if constexpr (kIsFp8) {
#pragma unroll
      for (int j = 0; j < kColumnTiles; j += 2) {
        const uint2 x = {pack<Q>(o[j][2 * r] * factor, o[j + 1][2 * r] * factor),
                         pack<Q>(o[j][2 * r + 1] * factor, o[j + 1][2 * r + 1] * factor)};
        *reinterpret_cast<uint2*>(&row[j * 8 + quad * 4]) = x;
      }
    } else {
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j) {
        *reinterpret_cast<uint32_t*>(&row[j * 8 + quad * 2]) =
            pack<Q>(o[j][2 * r] * factor, o[j][2 * r + 1] * factor);
      }
    }
  }

 private:
  // A 16-bit element holds two columns of FP8, which belong to two different column tiles.
  __device__ __forceinline__ void add_pairs(int j, const uint32_t (&p)[4], uint32_t upper,
                                            uint32_t lower) {
    const uint32_t even[2] = {__byte_perm(upper, 0, 0x4420), __byte_perm(lower, 0, 0x4420)};
    const uint32_t odd[2] = {__byte_perm(upper, 0, 0x4431), __byte_perm(lower, 0, 0x4431)};
    mma<P>(o[j], p, widen<P>(even[0]), widen<P>(even[1]));
    mma<P>(o[j + 1], p, widen<P>(odd[0]), widen<P>(odd[1]));
  }
};

// Writes a warp's columns of a part to the output or as a partial result. They are staged in shared
// memory, so that each lane writes 16 adjacent bytes.
template <typename Q, typename Kv>
__device__ void store_part(const LatentCall& call, Shared<Q, Kv>& shared, const LatentWork& work,
                           const Columns<Q, Kv>& columns, const float (&factors)[kRows]) {
  constexpr int kPieces = kWarpDim / 8;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& results = shared.results[warp];
  Q* const rows =
      (work.partial >= 0 ? static_cast<Q*>(call.partial_out) + int64_t{work.partial} * kLatentDim
                         : static_cast<Q*>(call.out) + int64_t{work.out_row} * kLatentDim) +
      warp * kWarpDim + lane % kPieces * 8;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    columns.store(results[lane / 4], half, factors[half * 8 + lane / 4]);
    __syncwarp();
#pragma unroll
    for (int i = lane / kPieces; i < kRows / 2; i += 32 / kPieces) {
      const int row = half * 8 + i;
      if (row >= work.num_rows) break;
      store_vec(rows + row * kLatentDim, load_vec<8>(&results[i][lane % kPieces * 8]));
    }
    __syncwarp();
  }
}

// Computes the weights of a tile's parts in one row, by one warp; `lse` points to the first part's
// LSE. Returns the sum of the weights.
__device__ float weigh_parts(const float* lse, int num_parts, int stride, float* weights) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float top = -INFINITY;
  for (int part = lane; part < num_parts; part += 32) {
    weights[part] = __ldcg(lse + part * stride);
    top = fmaxf(top, weights[part]);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, distance));
  }
  const float origin = top == -INFINITY ? 0.0F : top;
  float sum = 0.0F;
  for (int part = lane; part < num_parts; part += 32) {
    weights[part] = fast_exp2(weights[part] - origin);
    sum += weights[part];
  }
  __syncwarp();
  return warp_sum(sum);
}

// Merges one share of a tile. A warp merges a row in pieces of 8 columns; with many parts, up to 8
// lanes share a piece.
template <typename Q, typename Kv>
__device__ void merge_share(const LatentCall& call, Shared<Q, Kv>& shared, const LatentWork& work,
                            int share) {
  constexpr int kPieces = kLatentDim / 8;
  constexpr int kAhead = 4;  // loads in flight
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int num_parts = work.num_parts;
  const int num_rows = work.num_rows;
  const int first_partial = work.partial - work.part * num_rows;
  const int log_sharers = min(3, 31 - __clz(max(1, num_parts / 4)));
  const int pieces = 32 >> log_sharers;
  const int sharer = lane >> (5 - log_sharers);
  const int step = 1 << log_sharers;
  const auto* const partials = static_cast<const uint4*>(call.partial_out);
  float* const weights = shared.part_weights[warp];
  for (int unit = (share * kWarps + warp) * pieces; unit < num_rows * kPieces;
       unit += min(num_parts, kMaxShares) * kWarps * pieces) {
    const int row = unit / kPieces;
    const int piece = unit % kPieces + lane % pieces;
    const uint32_t first = static_cast<uint32_t>((first_partial + row) * kPieces + piece);
    const auto load = [&](int part) {
      return part < num_parts
                 ? __ldcg(partials + first + static_cast<uint32_t>(part * num_rows * kPieces))
                 : uint4{0, 0, 0, 0};
    };
    // The first loads start before the weights are computed.
    uint4 bits[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) bits[i] = load(sharer + i * step);
    const float sum =
        weigh_parts(call.partial_lse + first_partial + row, num_parts, num_rows, weights);
    float acc[8] = {};
    for (int part = sharer; part < num_parts; part += kAhead * step) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const float weight = part + i * step < num_parts ? weights[part + i * step] : 0.0F;
        const auto x = *reinterpret_cast<const Vec<Q, 8>*>(&bits[i]);
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[j] += weight * to_float(x.v[j]);
        bits[i] = load(part + (kAhead + i) * step);
      }
    }
    __syncwarp();
    for (int distance = 16; distance >= pieces; distance /= 2) {
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[j] += __shfl_xor_sync(0xFFFFFFFFU, acc[j], distance);
    }
    if (sharer > 0) continue;
    const float factor = sum > 0.0F ? __fdividef(1.0F, sum) : 0.0F;
    Vec<Q, 8> out;
#pragma unroll
    for (int j = 0; j < 8; ++j) out.v[j] = from_float<Q>(acc[j] * factor);
    store_vec(static_cast<Q*>(call.out) + int64_t{work.out_row + row} * kLatentDim + piece * 8,
              out);
  }
}

// The code of the computing warps.
template <typename Q, typename Kv>
__device__ void compute_parts(const LatentCall& call, Shared<Q, Kv>& shared, int first, int end) {
  using S = Shared<Q, Kv>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half = static_cast<int>(threadIdx.x) / 32 / kKeyTiles;
  const float cache_scale = call.cache_scale != nullptr ? *call.cache_scale : 1.0F;
  const float scale = call.scale * kLog2E * cache_scale;
  RingPosition at;
  // A worker splits at most the first and the last of its tiles.
  int num_cuts = 0;
  for (int idx = first; idx < end; ++idx) {
    const uint32_t parity = static_cast<uint32_t>(idx - first) & 1;
    shared.query_filled.wait(parity);
    const Part& part = shared.parts[parity];
    Columns<Q, Kv> columns;
    Softmax<Q, Kv> softmax;
    const int row = softmax.row();
    softmax.end = row < part.work.num_rows ? part.row_end(call, row) : 0;
    uint32_t q[kHalfSteps][4];
    if (part.num_steps > 0) load_queries(shared, half, q);
    // Each lane arrives for its own loads, so that compute-sanitizer recognizes their order.
    shared.query_freed.arrive();
    if (part.num_steps > 0) {
      const int kv_start = part.work.kv_start;
      const int num_steps = part.num_steps;
      int stage = at.stage;
      shared.filled[stage].wait(at.parity);
      multiply_keys(shared, stage, 0, q);
      compute_barrier();
      softmax.read(shared, 0, kv_start, scale);
      softmax.write(shared, 0);
      for (int step = 1; step < num_steps; ++step) {
        at.advance(S::kStages);
        const int buffer = step % 2;
        shared.filled[at.stage].wait(at.parity);
        multiply_keys(shared, at.stage, buffer, q);
        compute_barrier();
        columns.shrink(shared, 1 - buffer);
        softmax.read(shared, buffer, kv_start + step * kStep, scale);
        columns.add(shared, stage, 1 - buffer, 0);
        columns.add(shared, stage, 1 - buffer, 16);
        softmax.write(shared, buffer);
        __syncwarp();
        if (lane == 0) shared.freed[stage].arrive();
        stage = at.stage;
      }
      compute_barrier();
      const int buffer = (num_steps - 1) % 2;
      columns.shrink(shared, buffer);
      columns.add(shared, stage, buffer, 0);
      columns.add(shared, stage, buffer, 16);
      __syncwarp();
      if (lane == 0) shared.freed[stage].arrive();
      at.advance(S::kStages);
    }
    if (idx == first) wait_for_previous_kernel();
    float(&factors)[kRows] = shared.factors[parity];
    softmax.finish(call, part.work, cache_scale, factors);
    compute_barrier();
    store_part(call, shared, part.work, columns, factors);
    if (part.work.partial < 0) continue;
    if (threadIdx.x == 0) shared.cuts[num_cuts].work = part.work;
    ++num_cuts;
  }
  if (num_cuts == 0) return;
  compute_barrier();
  // The fence follows the last part instead of each part, because it takes several microseconds
  // while other warps copy.
  if (threadIdx.x == 0) {
    __threadfence();
    for (int i = 0; i < num_cuts; ++i) shared.cuts[i].arrival.arrive(call, shared.cuts[i].work);
  }
  for (int i = 0; i < num_cuts; ++i) {
    if (threadIdx.x == 0) shared.shares = shared.cuts[i].arrival.shares();
    compute_barrier();
    for (uint32_t left = shared.shares; left != 0; left &= left - 1) {
      merge_share(call, shared, shared.cuts[i].work, __ffs(static_cast<int>(left)) - 1);
    }
    compute_barrier();
  }
}

template <typename Q, typename Kv>
__global__ void __launch_bounds__(kThreads, 1)
    latent_decode_kernel(const __grid_constant__ LatentCall call) {
  using S = Shared<Q, Kv>;
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<S*>(memory);
  trigger_dependent_launch();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < S::kStages; ++stage) {
      shared.filled[stage].init(kCopyWarps);
      shared.freed[stage].init(kWarps);
    }
    shared.query_filled.init(kCopyWarps);
    shared.query_freed.init(kComputeThreads);
    publish_barriers();
  }
  __syncthreads();
  const int first = call.arrays.worker_start[blockIdx.x];
  const int end = call.arrays.worker_start[blockIdx.x + 1];
  if (threadIdx.x < kComputeThreads) {
    compute_parts(call, shared, first, end);
  } else {
    copy_parts(call, shared, first, end);
  }
}

template <typename Q, typename Kv>
void launch(const LatentCall& call, CudaStream& stream) {
  static_assert(sizeof(Shared<Q, Kv>) <= size_t{227} << 10);
  const LaunchShape shape = {.grid = static_cast<unsigned>(call.grid.num_workers),
                             .block = kThreads,
                             .shared_bytes = sizeof(Shared<Q, Kv>),
                             .overlap_start = true};
  QUIRE_LAUNCH(stream, (latent_decode_kernel<Q, Kv>), shape, call);
}

}  // namespace

void launch_latent_decode(const LatentCall& call, DType q, DType cache, CudaStream& stream) {
  if (q == DType::kF16) return launch<__half, __half>(call, stream);
  if (cache == q) return launch<__nv_bfloat16, __nv_bfloat16>(call, stream);
  launch<__nv_bfloat16, __nv_fp8_e4m3>(call, stream);
}

}  // namespace quire::cuda::flashinfer_backend
