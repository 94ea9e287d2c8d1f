// Prefill and decode with heads of more than 256 columns on Hopper, with wgmma.
//
// A thread block has a tile of 64 packed rows of one request and KV head. The output of a tile, 64
// rows of up to 512 columns in F32, takes half of an SM's registers: each of two consumer
// warpgroups has half of the columns. A producer copies keys and values into a ring in shared
// memory. For every 128 positions, the ring has one stage per 64 columns of the keys, and one stage
// per 16 positions of the values. Each warpgroup
// - multiplies the queries by the keys of 64 of the positions: S = Q K^T,
// - exchanges the maxima of the rows with the other warpgroup,
// - writes the weights P of its positions to shared memory,
// - and multiplies the weights of all 128 positions by its columns of the values: O += P V.
// The weights of a step are computed while the tensor cores multiply the last values of the step
// before.
//
// In prefill, the two thread blocks of a cluster have 128 packed rows, and each copies half of
// every stage to both (TMA multicast), so that the L2 is read half as often.
//
// An FP8 cache is not copied by TMA: the producer's threads convert it to the queries' type.
#include <algorithm>
#include <array>

#include "cuda/attention/native/decode.cuh"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/tile.cuh"
#include "cuda/base/launch.h"
#include "cuda/base/tensor_map.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/search.cuh"
#include "cuda/device/tensor_core.cuh"

namespace quire::cuda::native {
namespace {

constexpr int kConsumers = 2;  // warpgroups
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kGroupColumns = 64;  // 128 bytes, a row of TMA's swizzle
constexpr int kGroups = kMaxWideDim / kGroupColumns;
constexpr int kUnits = kWideTokens / kUnitTokens;
constexpr int kColumns = kMaxWideDim / kConsumers;          // of the output, per warpgroup
constexpr int kPositions = kWideTokens / kConsumers;        // of S, per warpgroup
constexpr int kSliceBytes = kTileRows * kGroupColumns * 2;  // 64 columns of all rows
constexpr int kBoxBytes = kUnitTokens * kGroupColumns * 2;  // a copy: 16 positions, 64 columns
constexpr int kStageBytes = 8 * kBoxBytes;
static_assert(kStageBytes == kUnits * kBoxBytes && kStageBytes == kGroups * kBoxBytes);
static_assert(kPositions == 64);  // the rows of the keys that a wgmma multiplies
constexpr int kStages = 8;
constexpr int kMostKeyTokens = 64;  // of a box of keys; no page is larger
constexpr int kLateUnits = 4;  // of a step, whose products run while the next weights are computed

// A step's first positions, which may be outside of the span, are not among the last units.
static_assert((kUnits - kLateUnits) * kUnitTokens >= kMostKeyTokens);

// The layout of shared memory. Queries and weights are slices in the layout of
// operand_descriptor().
constexpr int kWeightsAt = kGroups * kSliceBytes;
constexpr int kWeightsBytes = kConsumers * kSliceBytes;  // of a step
constexpr int kRingAt = kWeightsAt + 2 * kWeightsBytes;
constexpr int kRowsAt = kRingAt + kStages * kStageBytes;  // one number per warpgroup and row
constexpr int kBarriersAt = kRowsAt + kConsumers * kTileRows * static_cast<int>(sizeof(float));
constexpr int kSharedBytes = kBarriersAt + 2 * kStages * static_cast<int>(sizeof(Mbarrier));
static_assert(kSharedBytes <= 227 * 1024);

struct WideParams : Params {
  // Unused with an FP8 cache. The axes are columns, positions of a page, groups of columns, heads
  // and pages.
  CUtensorMap keys;
  CUtensorMap values;
  int key_tokens = 0;    // positions of a box of keys: at most a page
  int value_groups = 0;  // groups of columns of a box of values
};

// The tile of a cluster, and the positions that its rows attend to.
struct WideTile {
  Request req;
  int kv_head;
  int split;
  int first_row;  // of the thread block
  int num_rows;   // of the request
  Span span;
  int first;      // the first position that is copied
  int num_steps;  // of kWideTokens positions
  bool has_work;  // the cluster has rows

  __device__ explicit WideTile(const WideParams& p) {
    const auto cluster = static_cast<int>(cluster_size());
    const int rows = cluster * kTileRows;
    // The tiles of request r are numbered from (packed rows before r) / rows + r on. This leaves
    // enough numbers for any lengths.
    const auto first_tile = [&](int req_idx) {
      return (p.query_start[p.first_req + req_idx] - p.first_token) * p.group / rows + req_idx;
    };
    // The last tiles attend to the most positions, so they start first.
    const int tile = (static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)) / cluster;
    const int req_idx = last_starting_by(0, p.num_reqs, tile, first_tile);
    kv_head = static_cast<int>(blockIdx.y);
    split = static_cast<int>(blockIdx.z);
    req = read_request(p, p.first_req + req_idx);
    num_rows = req.q_len * p.group;
    const int first_of_cluster = (tile - first_tile(req_idx)) * rows;
    first_row = first_of_cluster + static_cast<int>(cluster_rank()) * kTileRows;
    has_work = first_of_cluster < num_rows;
    if (!has_work) return;
    const int last_row = min(num_rows, first_of_cluster + rows) - 1;
    const Span all = {visible_span(p, req, first_of_cluster / p.group).first,
                      visible_span(p, req, last_row / p.group).end};
    // Boxes of keys do not cross pages.
    const Span aligned = {all.first & -p.key_tokens, all.end};
    span = split_span(aligned, split, p.num_splits, kWideTokens);
    first = span.first;
    span.first = max(first, all.first);
    num_steps = span.first < span.end ? (span.end - first + kWideTokens - 1) / kWideTokens : 0;
  }
  __device__ int first_of(int step) const { return first + step * kWideTokens; }
  __device__ int num_units(int step) const {
    return min(kUnits, (span.end - first_of(step) + kUnitTokens - 1) / kUnitTokens);
  }
};

struct Ring {
  uint32_t memory;
  Mbarrier* full;   // per stage: its bytes have arrived
  Mbarrier* empty;  // per stage: all warpgroups of the cluster have read it
  RingPosition at;

  __device__ explicit Ring(unsigned char* shared)
      : memory(shared_address(shared) + kRingAt),
        full(reinterpret_cast<Mbarrier*>(shared + kBarriersAt)),
        empty(full + kStages) {}

  __device__ void init(uint32_t num_producers, uint32_t num_readers) {
    for (int i = 0; i < kStages; ++i) {
      full[i].init(num_producers);
      empty[i].init(num_readers);
    }
    publish_barriers();
  }
  __device__ uint32_t stage() const {
    return memory + static_cast<uint32_t>(at.stage * kStageBytes);
  }
};

__device__ __forceinline__ int num_groups(int dim) {
  return (dim + kGroupColumns - 1) / kGroupColumns;
}

// The coordinates of a box.
struct BoxPlace {
  int column = 0;
  int token = 0;
  int group = 0;
  int head = 0;
  int page = 0;
};

// Copies a box to this place in the shared memory of these thread blocks, and counts the bytes at
// the barrier there.
__device__ __forceinline__ void copy_box(const CUtensorMap& map, const BoxPlace& at, uint32_t to,
                                         const Mbarrier& full, uint16_t receivers) {
  if ((receivers & (receivers - 1)) == 0) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
        "l"(&map), "r"(shared_address(&full.state)), "r"(at.column), "r"(at.token), "r"(at.group),
        "r"(at.head), "r"(at.page)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(to),
        "l"(&map), "r"(shared_address(&full.state)), "r"(at.column), "r"(at.token), "r"(at.group),
        "r"(at.head), "r"(at.page), "h"(receivers)
        : "memory");
  }
}

// The order of the stages. Calls keys(step) and values(step).
template <class Keys, class Values>
__device__ __forceinline__ void produce_stages(const WideTile& tile, const Keys& keys,
                                               const Values& values) {
  if (tile.num_steps > 0) keys(0);
  for (int step = 0; step < tile.num_steps; ++step) {
    if (step + 1 < tile.num_steps) keys(step + 1);
    values(step);
  }
}

// Copies all stages by TMA; runs on the producer warpgroup. Each lane has one box of a stage. The
// thread blocks of a cluster and their four warps take turns with the lanes.
__device__ __forceinline__ void copy_stages(const WideParams& p, const WideTile& tile, Ring ring) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto cluster = static_cast<int>(cluster_size());
  const auto receivers = static_cast<uint16_t>((1 << cluster) - 1);
  const int warp = static_cast<int>(threadIdx.x) / 32 - kConsumers * 4;
  const bool has_turn =
      lane % cluster == static_cast<int>(cluster_rank()) && lane / cluster % 4 == warp;
  const int key_groups = num_groups(p.head_dim);
  const int key_bytes = p.key_tokens * kGroupColumns * 2;
  const int value_bytes = p.value_groups * kBoxBytes;
  const int value_boxes = (num_groups(p.head_dim_v) + p.value_groups - 1) / p.value_groups;
  const int page_mask = (1 << p.page_shift) - 1;
  const auto begin_stage = [&](int num_bytes) {
    ring.empty[ring.at.stage].wait(ring.at.parity ^ 1);
    if (lane == 0 && warp == 0) {
      ring.full[ring.at.stage].arrive_expecting(static_cast<uint32_t>(num_bytes));
    }
    __syncwarp();
  };
  // The page of the lane's unit of 16 positions. The page table has undefined entries after the
  // last position.
  const auto page_of = [&](int step) {
    const int position = tile.first_of(step) + lane * kUnitTokens;
    return lane < kUnits && position < tile.span.end
               ? __ldg(tile.req.pages + (position >> p.page_shift))
               : 0;
  };
  int page = 0;
  int page_before = 0;
  int next_page = page_of(0);
  const auto copy_keys = [&](int step) {
    page_before = page;
    page = next_page;
    next_page = page_of(step + 1);
    const int position = lane * p.key_tokens;  // in the step
    const int boxes = (tile.num_units(step) * kUnitTokens + p.key_tokens - 1) / p.key_tokens;
    BoxPlace at;
    at.token = (tile.first_of(step) + position) & page_mask;
    at.head = tile.kv_head;
    at.page = __shfl_sync(0xFFFFFFFFU, page, position / kUnitTokens % kUnits);
    for (int group = 0; group < key_groups; ++group) {
      begin_stage(boxes * key_bytes);
      if (has_turn && lane < boxes) {
        at.column = group * kGroupColumns;
        copy_box(p.keys, at, ring.stage() + static_cast<uint32_t>(lane * key_bytes),
                 ring.full[ring.at.stage], receivers);
      }
      ring.at.advance(kStages);
    }
  };
  const auto copy_values = [&](int step) {
    const int pages = step + 1 < tile.num_steps ? page_before : page;
    const int units = tile.num_units(step);
    BoxPlace at;
    at.head = tile.kv_head;
    // With several groups in a box, the axis of columns has one group.
    (p.value_groups > 1 ? at.group : at.column) =
        p.value_groups > 1 ? lane * p.value_groups : lane * kGroupColumns;
    for (int unit = 0; unit < units; ++unit) {
      at.page = __shfl_sync(0xFFFFFFFFU, pages, unit);
      at.token = (tile.first_of(step) + unit * kUnitTokens) & page_mask;
      begin_stage(value_boxes * value_bytes);
      if (has_turn && lane < value_boxes) {
        copy_box(p.values, at, ring.stage() + static_cast<uint32_t>(lane * value_bytes),
                 ring.full[ring.at.stage], receivers);
      }
      ring.at.advance(kStages);
    }
  };
  produce_stages(tile, copy_keys, copy_values);
}

// Fills all stages from an FP8 cache; runs on the producer warpgroup. Each thread copies pieces of
// 16 elements. While a stage is stored, the loads of the next one run.
template <typename T>
class Fp8Producer {
 public:
  __device__ Fp8Producer(const WideParams& p, const WideTile& tile, const Ring& ring)
      : p_(p),
        tile_(tile),
        ring_(ring),
        keys_(PagedRows::keys<C>(p, tile.kv_head)),
        values_(PagedRows::values<C>(p, tile.kv_head)) {}

  __device__ __forceinline__ void run() {
    if (tile_.num_steps == 0) return;
    load();
#pragma unroll 1
    while (true) {
      const int row = first_row();
      const int row_step = is_value_ ? kValueRows : kKeyRows;
      const uint32_t slice =
          ring_.stage() + (is_value_ ? static_cast<uint32_t>(thread() % 32 / 4 * kBoxBytes) : 0U);
      uint4 pieces[kPieces];
#pragma unroll
      for (int i = 0; i < kPieces; ++i) pieces[i] = pieces_[i];
      const bool has_next = advance();
      if (has_next) load();
      ring_.empty[ring_.at.stage].wait(ring_.at.parity ^ 1);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) store(slice, row + i * row_step, pieces[i]);
      order_bulk_copies();  // wgmma reads shared memory through the same proxy as bulk copies
      ring_.full[ring_.at.stage].arrive();
      ring_.at.advance(kStages);
      if (!has_next) return;
    }
  }

 private:
  using C = Config<T, __nv_fp8_e4m3, kMaxWideDim>;
  static constexpr int kPieces = kStageBytes / 2 / 16 / 128;  // per thread and stage
  static constexpr int kKeyRows = 32;   // positions of the keys that all threads load at a time
  static constexpr int kValueRows = 4;  // of the values

  __device__ static int thread() {
    return static_cast<int>(threadIdx.x) % 128;
  }
  __device__ __forceinline__ int first_row() const {
    return thread() / (is_value_ ? 32 : 4);
  }

  // Goes on to the next stage in the order of produce_stages().
  __device__ __forceinline__ bool advance() {
    const int count = is_value_ ? tile_.num_units(step_) : num_groups(p_.head_dim);
    if (++stage_ < count) return true;
    stage_ = 0;
    const int last_keys = is_value_ ? step_ + 1 : step_;
    const bool has_more_keys = last_keys + 1 < tile_.num_steps;
    if (is_value_ || step_ == 0) {
      is_value_ = !has_more_keys;
      step_ = has_more_keys ? last_keys + 1 : last_keys;
    } else {
      is_value_ = true;
      --step_;
    }
    return step_ < tile_.num_steps;
  }

  // Elements outside of the tile's span or of the head become zeros.
  __device__ __forceinline__ void load() {
    const PagedRows rows = {is_value_ ? values_.base : keys_.base,
                            is_value_ ? values_.page_stride : keys_.page_stride,
                            is_value_ ? values_.token_stride : keys_.token_stride,
                            is_value_ ? values_.row_pieces : keys_.row_pieces};
    const int piece = is_value_ ? thread() % 32 : stage_ * 4 + thread() % 4;
    const int first = tile_.first_of(step_) + first_row() + (is_value_ ? stage_ * kUnitTokens : 0);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int position = first + i * (is_value_ ? kValueRows : kKeyRows);
      pieces_[i] = {};
      if (position < tile_.span.first || position >= tile_.span.end || piece >= rows.row_pieces) {
        continue;
      }
      const int64_t page = __ldg(tile_.req.pages + (position >> p_.page_shift));
      const int token = position & ((1 << p_.page_shift) - 1);
      pieces_[i] = __ldg(reinterpret_cast<const uint4*>(rows.base + page * rows.page_stride +
                                                        token * rows.token_stride + piece * 16));
    }
  }

  // Stores 16 elements as two pieces of the type T in a row of 64 columns.
  __device__ __forceinline__ void store(uint32_t slice, int row, const uint4& piece) const {
    const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t x = words[half * 2];
      const uint32_t y = words[half * 2 + 1];
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                       slice + swizzled<8>(row, thread() % 4 * 2 + half)),
                   "r"(widen<T>(x & 0xFFFF)), "r"(widen<T>(x >> 16)), "r"(widen<T>(y & 0xFFFF)),
                   "r"(widen<T>(y >> 16))
                   : "memory");
    }
  }

  const WideParams& p_;
  WideTile tile_;
  Ring ring_;
  PagedRows keys_;
  PagedRows values_;
  int step_ = 0;
  bool is_value_ = false;
  int stage_ = 0;  // of the step: a group of the keys' columns or a unit of the values
  uint4 pieces_[kPieces];
};

__device__ __forceinline__ int warpgroup() {
  return static_cast<int>(threadIdx.x) / 128;
}
// Barrier 0 is used by __syncthreads().
__device__ __forceinline__ void sync_consumers() {
  asm volatile("barrier.cta.sync.aligned 1, %0;" ::"n"(kConsumers * 128) : "memory");
}
__device__ __forceinline__ void sync_warpgroup() {
  if (warpgroup() == 0) {
    asm volatile("barrier.cta.sync.aligned 2, 128;" ::: "memory");
  } else {
    asm volatile("barrier.cta.sync.aligned 3, 128;" ::: "memory");
  }
}

// A warpgroup's place in the ring. Stages are released in their order.
class Reader {
 public:
  __device__ explicit Reader(const Ring& ring)
      : ring_(ring), thread_(static_cast<uint32_t>(threadIdx.x) % 128) {
    // The first threads of a warpgroup signal one thread block of the cluster each.
    if (thread_ < cluster_size()) empty_ = address_in(shared_address(ring.empty), thread_);
  }
  // Returns the next stage when it has arrived.
  __device__ __forceinline__ uint32_t await_stage() {
    ring_.full[ring_.at.stage].wait(ring_.at.parity);
    const uint32_t stage = ring_.stage();
    ring_.at.advance(kStages);
    ++num_started_;
    return stage;
  }
  // Waits for all committed products but the last group, which reads this many stages, and releases
  // the stages of the others.
  __device__ __forceinline__ void release_read(int last_stages = 1) {
    wgmma::wait<1>();
    release(num_started_ - last_stages);
  }
  __device__ __forceinline__ void release_all() {
    wgmma::wait<0>();
    release(num_started_);
  }

 private:
  __device__ __forceinline__ void release(int count) {
    num_started_ -= count;
    for (; count > 0; --count) {
      if (thread_ < cluster_size()) {
        arrive_at(empty_ + static_cast<uint32_t>(oldest_ * static_cast<int>(sizeof(Mbarrier))));
      }
      if (++oldest_ == kStages) oldest_ = 0;
    }
  }

  Ring ring_;
  uint32_t thread_;
  uint32_t empty_ = 0;   // the first barrier in a thread block of the cluster
  int num_started_ = 0;  // stages in use
  int oldest_ = 0;       // of them
};

// Starts copies of a tile's queries as slices of 64 columns, padded with zeros.
template <typename T>
__device__ __forceinline__ void copy_queries(const Params& p, const WideTile& tile,
                                             uint32_t queries) {
  constexpr int kRowPieces = kMaxWideDim / 8;
  for (int index = static_cast<int>(threadIdx.x); index < kTileRows * kRowPieces;
       index += kConsumers * 128) {
    const int row = index / kRowPieces;
    const int piece = index % kRowPieces;
    const int packed = tile.first_row + row;
    const bool wanted = packed < tile.num_rows && piece * 8 < p.head_dim;
    const T* source = static_cast<const T*>(p.q);
    if (wanted) {
      const int64_t at = int64_t{tile.req.first_token + packed / p.group} * p.num_heads +
                         tile.kv_head * p.group + packed % p.group;
      source += at * p.head_dim + piece * 8;
    }
    copy_async(
        queries + static_cast<uint32_t>(piece / 8 * kSliceBytes) + swizzled<8>(row, piece % 8),
        source, wanted);
  }
  commit_copies();
}

// A warp's 16 rows, and its warpgroup's columns of their output. A thread has rows lane.row (index
// 0) and lane.row + 8 (index 1). Elements 4 * j + 2 * index and the next one are columns 8 * j + 2
// * lane.quad and the next one of the row. In S, columns are positions.
template <typename T>
class WideRows {
 public:
  float o[kColumns / 2] = {};
  float max[2] = {-INFINITY, -INFINITY};  // log2 units
  float sum[2] = {0.0F, 0.0F};            // over the warpgroup's positions, this thread's share

  __device__ WideRows(const Params& p, const WideTile& tile, unsigned char* shared, Lane lane)
      : memory_(shared_address(shared)),
        row_numbers_(reinterpret_cast<float*>(shared + kRowsAt)),
        row_(static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane.row) {
    const auto spans_of = [&](int row) {
      // Rows beyond the last use its positions; their results are not written.
      return visible_span(p, tile.req, min(tile.first_row + row, tile.num_rows - 1) / p.group);
    };
    visible_[0] = spans_of(row_);
    visible_[1] = spans_of(row_ + 8);
    visible_to_all_ = {spans_of(kTileRows - 1).first, spans_of(0).end};
  }

  __device__ uint32_t queries() const { return memory_; }
  // The row, from 0 to 63, with this index.
  __device__ int row(int index) const { return row_ + index * 8; }

  // Starts S of the warpgroup's positions.
  __device__ __forceinline__ void multiply_keys(float (&s)[kPositions / 2], Reader& reader,
                                                int num_groups) const {
    const auto keys_at = static_cast<uint32_t>(warpgroup() * kPositions * kGroupColumns * 2);
#pragma unroll 1
    for (int group = 0; group < num_groups; ++group) {
      const uint64_t q =
          wgmma::operand_descriptor(memory_ + static_cast<uint32_t>(group * kSliceBytes));
      const uint64_t k = wgmma::operand_descriptor(reader.await_stage() + keys_at);
      wgmma::keep(s);
      wgmma::begin();
#pragma unroll
      for (int i = 0; i < kGroupColumns / 16; ++i) {
        wgmma::multiply<T, kPositions>(s, q + i * 2, k + i * 2, group + i > 0 ? 1 : 0);
      }
      wgmma::commit();
      reader.release_read();
    }
  }

  // Converts S to weights, in shared memory for both warpgroups. `first` is the warpgroup's first
  // position.
  __device__ __forceinline__ void weigh(float (&s)[kPositions / 2], const LogitScale& scale,
                                        int step, int first, Lane lane) {
    scale_and_mask(s, scale, first, visible_, visible_to_all_, lane);
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < kPositions / 2; ++i) top[i / 2 % 2] = fmaxf(top[i / 2 % 2], s[i]);
#pragma unroll
    for (int r = 0; r < 2; ++r) top[r] = max_of_row<1, 4>(top[r]);
    exchange(top, lane);
    // The products of the step before the last have ended in both warpgroups, so their weights are
    // free.
#pragma unroll
    for (int r = 0; r < 2; ++r) top[r] = fmaxf(top[r], of_other(r));
    const bool rises = top[0] > max[0] + kMaxLag || top[1] > max[1] + kMaxLag;
    rescales_ = __any_sync(0xFFFFFFFFU, rises);
    if (rescales_) raise_max(top);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float origin = max[r] == -INFINITY ? 0.0F : max[r];  // no positions: all weights are 0
#pragma unroll
      for (int i = 0; i < kPositions / 2; ++i) {
        if (i / 2 % 2 != r) continue;
        s[i] = fast_exp2(s[i] - origin);
        sum[r] += s[i];
      }
    }
    const int lane_id = static_cast<int>(threadIdx.x) % 32;
    const int to_row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane_id % 16;
    const uint32_t weights = weights_of(step) + static_cast<uint32_t>(warpgroup() * kSliceBytes);
#pragma unroll
    for (int t = 0; t < kPositions / 16; ++t) {
      store_matrices<false>(
          weights + swizzled<8>(to_row, t * 2 + lane_id / 16),
          {pack<T>(s[t * 8], s[t * 8 + 1]), pack<T>(s[t * 8 + 2], s[t * 8 + 3]),
           pack<T>(s[t * 8 + 4], s[t * 8 + 5]), pack<T>(s[t * 8 + 6], s[t * 8 + 7])});
    }
    order_bulk_copies();  // wgmma reads shared memory through the same proxy as bulk copies
  }

  // Rescales the accumulators to the maxima of the last weights, when no products run.
  __device__ __forceinline__ void rescale() {
    if (!rescales_) return;
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) o[i] *= shrink_[i / 2 % 2];
  }

  // Starts to add the products of the weights and the values of units of a step. clear(unit,
  // values) is called before the products with a unit.
  template <class Clear>
  __device__ __forceinline__ void multiply_values(Reader& reader, int step, int num_units,
                                                  const Clear& clear) {
#pragma unroll 1
    for (int unit = 0; unit < num_units; ++unit) {
      const uint32_t values = reader.await_stage() + values_at();
      clear(unit, values);
      wgmma::keep(o);
      wgmma::begin();
      multiply_unit(weights_of(step), unit, values);
      wgmma::commit();
      reader.release_read();
    }
  }
  // Does the same for the last units of a whole step.
  __device__ __forceinline__ void multiply_late_values(Reader& reader, int step) {
    uint32_t values[kLateUnits];
#pragma unroll
    for (uint32_t& unit : values) unit = reader.await_stage() + values_at();
    wgmma::keep(o);
    wgmma::begin();
#pragma unroll
    for (int i = 0; i < kLateUnits; ++i) {
      multiply_unit(weights_of(step), kUnits - kLateUnits + i, values[i]);
    }
    wgmma::commit();
    reader.release_read(kLateUnits);
  }

  // Sums up each row over the threads and warpgroups that share it.
  __device__ __forceinline__ void sum_up(Lane lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = sum_of_row<1, 4>(sum[r]);
    exchange(sum, lane);
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] += of_other(r);
  }

 private:
  __device__ uint32_t weights_of(int step) const {
    return memory_ + static_cast<uint32_t>(kWeightsAt + step % 2 * kWeightsBytes);
  }
  // The first of the warpgroup's columns in a stage.
  __device__ static uint32_t values_at() {
    return static_cast<uint32_t>(warpgroup() * (kColumns / kGroupColumns) * kBoxBytes);
  }
  __device__ __forceinline__ void multiply_unit(uint32_t weights, int unit, uint32_t values) {
    const uint64_t a =
        wgmma::operand_descriptor(weights + static_cast<uint32_t>(unit / 4 * kSliceBytes));
    wgmma::multiply_transposed<T>(o, a + static_cast<uint32_t>(unit % 4 * 2),
                                  wgmma::transposed_descriptor(values, kBoxBytes));
  }

  // Shows the other warpgroup a number for each row.
  __device__ __forceinline__ void exchange(const float (&x)[2], Lane lane) {
    if (lane.quad == 0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) row_numbers_[warpgroup() * kTileRows + row(r)] = x[r];
    }
    sync_consumers();
  }
  __device__ float of_other(int r) const {
    return row_numbers_[(1 - warpgroup()) * kTileRows + row(r)];
  }

  // Sets each row's maximum to its largest logit so far. Both warpgroups do the same.
  __device__ __forceinline__ void raise_max(const float (&top)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float of_row = fmaxf(max[r], top[r]);
      shrink_[r] = of_row == -INFINITY ? 1.0F : fast_exp2(max[r] - of_row);
      max[r] = of_row;
      sum[r] *= shrink_[r];
    }
  }

  uint32_t memory_;
  float* row_numbers_;  // [warpgroup][row]
  int row_;
  Span visible_[2];
  Span visible_to_all_;
  bool rescales_ = false;  // in the whole warp
  float shrink_[2] = {1.0F, 1.0F};
};

// Overwrites the values of a unit's positions outside of `span` with zeros, in the warpgroup's
// columns: they may be NaN, and NaN times a weight of zero is NaN.
__device__ __forceinline__ void clear_outside(uint32_t values, int first, Span span) {
  if (first >= span.first && first + kUnitTokens <= span.end) return;
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int position = first + thread / 8;
#pragma unroll
  for (int group = 0; group < kColumns / kGroupColumns; ++group) {
    if (position >= span.first && position < span.end) continue;
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(
                     values + static_cast<uint32_t>(group * kBoxBytes + thread * 16)),
                 "r"(0)
                 : "memory");
  }
  order_bulk_copies();  // wgmma reads shared memory through the same proxy as bulk copies
  sync_warpgroup();
}

// Writes a split's partial results of a thread's part of the rows.
template <typename T>
__device__ __forceinline__ void write_partial_rows(const Params& p, const WideTile& tile,
                                                   const WideRows<T>& rows, Lane lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = tile.first_row + rows.row(r);
    if (row >= tile.num_rows) continue;
    const int head = tile.kv_head * p.group + row % p.group;
    const int64_t partial_idx =
        partial_index(p, tile.req.first_token + row / p.group, head, tile.split);
    finish_row_or_store_partial(p, head, partial_idx, rows.max[r], rows.sum[r], true,
                                lane.quad == 0 && warpgroup() == 0);
    float* out = p.partial_out + partial_idx * p.head_dim_v;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const int d = warpgroup() * kColumns + j * 8 + lane.quad * 2;
      if (d >= p.head_dim_v) continue;
      *reinterpret_cast<float2*>(out + d) = {rows.o[4 * j + 2 * r], rows.o[4 * j + 2 * r + 1]};
    }
  }
}

// Writes the output of a warp's rows in the warpgroup's columns. The memory of the queries, which
// are no longer needed, takes it first, so that each access writes 512 bytes of a row.
template <typename T>
__device__ __forceinline__ void write_rows(const Params& p, const WideTile& tile,
                                           const WideRows<T>& rows) {
  float factors[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = min(tile.first_row + rows.row(r), tile.num_rows - 1);
    factors[r] = output_factor(p, tile.kv_head * p.group + row % p.group, rows.max[r], rows.sum[r]);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) % 128 / 32 * 16;
  const uint32_t slices =
      rows.queries() +
      static_cast<uint32_t>(warpgroup() * (kColumns / kGroupColumns) * kSliceBytes);
  const auto piece_at = [&](int row, int piece) {
    return slices + static_cast<uint32_t>(piece / 8 * kSliceBytes) +
           swizzled<8>(first_row + row, piece % 8);
  };
#pragma unroll
  for (int t = 0; t < kColumns / 16; ++t) {
    const float* o = rows.o + t * 8;
    store_matrices<false>(piece_at(lane % 16, t * 2 + lane / 16),
                          {pack<T>(o[0] * factors[0], o[1] * factors[0]),
                           pack<T>(o[2] * factors[1], o[3] * factors[1]),
                           pack<T>(o[4] * factors[0], o[5] * factors[0]),
                           pack<T>(o[6] * factors[1], o[7] * factors[1])});
  }
  __syncwarp();
  const int d = warpgroup() * kColumns + lane * 8;
  static_assert(kColumns == 32 * 8);
  if (d >= p.head_dim_v) return;
#pragma unroll 4
  for (int i = 0; i < 16; ++i) {
    const int row = tile.first_row + first_row + i;
    if (row >= tile.num_rows) return;
    const int64_t at = int64_t{tile.req.first_token + row / p.group} * p.num_heads +
                       tile.kv_head * p.group + row % p.group;
    *reinterpret_cast<uint4*>(static_cast<T*>(p.out) + at * p.head_dim_v + d) =
        load_shared(piece_at(i, lane));
  }
}

template <typename T, bool kIsFp8>
__device__ __forceinline__ void attend(const WideParams& p, const WideTile& tile, Ring ring,
                                       unsigned char* shared) {
  copy_queries<T>(p, tile, shared_address(shared));
  const Lane lane;
  const LogitScale scale(p);
  WideRows<T> rows(p, tile, shared, lane);
  const int key_groups = num_groups(p.head_dim);
  Reader reader(ring);
  wait_for_copies<0>();
  order_bulk_copies();  // wgmma reads shared memory through the same proxy as bulk copies
  sync_consumers();
  const auto weigh = [&](float(&s)[kPositions / 2], int step) {
    rows.weigh(s, scale, step, tile.first_of(step) + warpgroup() * kPositions, lane);
  };
  const auto multiply_values = [&](int step, int num_units) {
    rows.multiply_values(reader, step, num_units, [&](int unit, uint32_t values) {
      if constexpr (!kIsFp8) {
        clear_outside(values, tile.first_of(step) + unit * kUnitTokens, tile.span);
      }
    });
  };
  const auto finish_products = [&] {
    reader.release_all();
    wgmma::keep(rows.o);
  };
  if (tile.num_steps > 0) {
    {
      float s[kPositions / 2] = {};
      rows.multiply_keys(s, reader, key_groups);
      reader.release_all();
      wgmma::keep(s);
      weigh(s, 0);
    }
    const int last = tile.num_steps - 1;
    for (int step = 0; step < last; ++step) {
      float s[kPositions / 2] = {};
      rows.multiply_keys(s, reader, key_groups);
      sync_consumers();  // both warpgroups have written the step's weights
      multiply_values(step, kUnits - kLateUnits);
      rows.multiply_late_values(reader, step);
      wgmma::keep(s);
      weigh(s, step + 1);
      finish_products();
      rows.rescale();
    }
    sync_consumers();
    multiply_values(last, tile.num_units(last));
    finish_products();
  }
  rows.sum_up(lane);
  if (p.num_splits > 1) return write_partial_rows(p, tile, rows, lane);
  write_rows(p, tile, rows);
}

template <typename T, bool kIsFp8>
__global__ __launch_bounds__(kThreads, 1) void wide_kernel(const __grid_constant__ WideParams p) {
  extern __shared__ __align__(1024) unsigned char wide_shared[];
  // This kernel does not wait for the previous one, because its launch has no overlap_start.
  trigger_dependent_launch();
  const WideTile tile(p);
  if (!tile.has_work) return;
  Ring ring(wide_shared);
  if (threadIdx.x == 0) ring.init(kIsFp8 ? 128 : 1, kConsumers * cluster_size());
  __syncwarp();
  if (cluster_size() > 1) sync_cluster();
  __syncthreads();
  // The thread block has 168 registers per thread, which its warpgroups share.
  if (warpgroup() == kConsumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if constexpr (kIsFp8) {
      Fp8Producer<T>(p, tile, ring).run();
    } else {
      copy_stages(p, tile, ring);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    attend<T, kIsFp8>(p, tile, ring, wide_shared);
  }
  // Other thread blocks may still copy into this one's ring or arrive at its barriers.
  __syncwarp();
  if (cluster_size() > 1) sync_cluster_memory();
}

// The map of the keys or values of all pages, whose number is unknown.
Result<CUtensorMap> cache_map(const Params& p, DType dtype, const void* base, int dim,
                              const std::array<int64_t, 3>& strides, int box_tokens,
                              int box_groups) {
  const auto columns = static_cast<uint64_t>(box_groups > 1 ? kGroupColumns : dim);
  const uint64_t sizes[] = {columns, uint64_t{1} << p.page_shift,
                            box_groups > 1 ? static_cast<uint64_t>(dim / kGroupColumns) : 1,
                            static_cast<uint64_t>(p.num_heads / p.group), uint64_t{1} << 31};
  const uint64_t all_strides[] = {static_cast<uint64_t>(strides[0]), kGroupColumns,
                                  static_cast<uint64_t>(strides[1]),
                                  static_cast<uint64_t>(strides[2])};
  const uint32_t box[] = {kGroupColumns, static_cast<uint32_t>(box_tokens),
                          static_cast<uint32_t>(box_groups), 1, 1};
  return encode_tensor_map({.base = base,
                            .dtype = dtype,
                            .sizes = sizes,
                            .strides = all_strides,
                            .box = box,
                            .is_read_in_full = true});
}

template <typename T, bool kIsFp8>
void launch(CudaStream& stream, const WideParams& p, int cluster) {
  const int64_t num_tiles = int64_t{p.num_tokens} * p.group / (kTileRows * cluster) + p.num_reqs;
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_tiles * cluster),
                                          static_cast<unsigned>(p.num_heads / p.group),
                                          static_cast<unsigned>(p.num_splits)),
                             .block = kThreads,
                             .shared_bytes = kSharedBytes,
                             .cluster = static_cast<unsigned>(cluster)};
  QUIRE_LAUNCH(stream, (wide_kernel<T, kIsFp8>), shape, p);
}

}  // namespace

Status launch_wide(CudaStream& stream, const Params& params, DType kv) {
  WideParams p = {params, {}, {}};
  p.key_tokens = kUnitTokens;
  if (kv == DType::kF8E4M3) {
    p.q_dtype == DType::kF16 ? launch<__half, true>(stream, p, 1)
                             : launch<__nv_bfloat16, true>(stream, p, 1);
    return {};
  }
  // A cluster of two is for requests of more rows than a tile has, by the average.
  const bool is_long =
      p.num_splits == 1 && int64_t{p.num_tokens} * p.group > int64_t{p.num_reqs} * kTileRows;
  const int cluster = is_long ? 2 : 1;
  // Columns in a box are all of a head, or those of whole groups.
  p.value_groups =
      p.head_dim_v % (kGroupColumns * cluster) == 0 ? p.head_dim_v / kGroupColumns / cluster : 1;
  p.key_tokens = std::min(1 << p.page_shift, kMostKeyTokens);
  QUIRE_ASSIGN_OR_RETURN(
      p.keys, cache_map(p, kv, p.k, p.head_dim,
                        {p.token_stride_k, p.head_stride_k, p.page_stride_k}, p.key_tokens, 1));
  QUIRE_ASSIGN_OR_RETURN(p.values, cache_map(p, kv, p.v, p.head_dim_v,
                                             {p.token_stride_v, p.head_stride_v, p.page_stride_v},
                                             kUnitTokens, p.value_groups));
  p.q_dtype == DType::kF16 ? launch<__half, false>(stream, p, cluster)
                           : launch<__nv_bfloat16, false>(stream, p, cluster);
  return {};
}

}  // namespace quire::cuda::native
