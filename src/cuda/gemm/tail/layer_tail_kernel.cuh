// Everything between the attention of two layers for one token row, as one cooperative launch with
// one thread block per SM. Each product is a phase:
//
//   phase    x in shared memory    product                            after it
//   kO       attention             delta = o * x                      residual += delta; x = norm
//   kGateUp  norm of residual      product = silu(gate * x) * up * x  x = product
//   kDown    product               delta = down * x                   residual += delta; x = norm
//   kQkv     norm of residual      qkv = next_qkv * x
//
// The last layer has no kQkv, and its kDown stores delta.
//
// The kernel is compiled per kind of weights (layer_tail.cu, packed_tail.cu). `Weights` defines
// each thread block's range of a product, the segments of weights that its warps take in turn, how
// the warps multiply them, and how all thread blocks receive the columns of x that others compute
// (Weights::X). The order in which sums are added depends only on the shapes and the number of
// thread blocks, so that every run has the same bits.
//
// Each warp has a ring buffer of stages in shared memory, which it fills when the kernel starts.
// From then on, one more warp, the loader, refills the rings: its lane w is the producer for warp
// w, and all lanes of warp w are the consumer (Weights::multiply):
//
//   WeightLoader                              Weights::multiply
//   bulk copy -> stage i  ---- arrived[i] --> wait for arrived[i]; read stage i
//   next segment -> stage i <-- released[i] - all lanes have read stage i
//                                             sums[...] = the warp's part of w * x
//
// No kernel writes weights, so the rings are filled before the wait for the previous kernel, and
// the loader runs ahead of the consumers across phases. So memory stays busy while thread blocks
// wait for each other.
//
// One phase, and the data that each barrier protects:
//
//   Weights::multiply           reads x, writes the sums of the range's columns
//   sync_consumers (in it)      sums, for other warps; x may be overwritten
//   add_columns                 reads sums, writes the range's columns of the residual
//   X::publish                  writes the columns that other thread blocks need
//   GridBarrier::wait           these columns, for other thread blocks
//   X::load                     reads them past the L1, writes x
//   sync_consumers              x, for other warps
//
// kO and kDown have the same ranges, and the residual is divided in the same way: each thread block
// keeps its columns of the residual in shared memory, and no other thread block writes them.
//
// With several ranks, each computes its part of the layer, and both deltas are sums over the ranks.
// A thread block sends its columns to the thread block with the same index on the other ranks
// (peer_rows.cuh), and adds the parts in the order of the ranks. All ranks add the same words, so
// their residuals have the same bits.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda/ops/peer_rows.cuh"

namespace quire::cuda::tail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

struct Shared {
  unsigned char* ring;  // of one warp
  Mbarrier* arrived;    // per stage: its bytes have arrived
  Mbarrier* released;   // per stage: all lanes have read it
  unsigned char* x;
  unsigned char* residual;  // the columns of this thread block
  float* sums;
};

// warp: the warp that owns the ring.
__device__ __forceinline__ Shared shared_of(const Params& p, unsigned char* memory, int warp) {
  const SharedLayout layout = shared_layout(p);
  Shared s;
  s.ring = memory + warp * p.num_stages * p.stage_bytes;
  s.arrived = reinterpret_cast<Mbarrier*>(memory + layout.barriers) + warp * p.num_stages;
  s.released = s.arrived + kWarps * p.num_stages;
  s.x = memory + layout.x;
  s.residual = memory + layout.residual;
  s.sums = reinterpret_cast<float*>(memory + layout.sums);
  return s;
}

// A barrier of the computing warps.
__device__ __forceinline__ void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// The thread block's ranges of all phases. They are computed once when the kernel starts, because
// divisions are slow.
template <typename Weights>
__device__ __forceinline__ typename Weights::Range* ranges() {
  // Besides the ranges, kernels need static shared memory for sums per warp or a barrier.
  static_assert(sizeof(typename Weights::Range) * kMaxGemms + 128 <= kStaticBytes);
  __shared__ typename Weights::Range ranges[kMaxGemms];
  return ranges;
}

// A warp's position among the segments of a range: the row of w (or the panel), and the segment
// within that row. A warp processes every kWarps-th segment. Advancing needs no division.
struct Cursor {
  int row = 0;
  int segment = 0;

  Cursor() = default;
  __device__ __forceinline__ Cursor(const ColumnRange& range, int warp)
      : row_segments_(range.row_segments),
        row_step_(kWarps / range.row_segments),
        segment_step_(kWarps % range.row_segments) {
    const int first = range.first_segment + warp;
    row = first / row_segments_;
    segment = first % row_segments_;
  }
  __device__ __forceinline__ void advance() {
    row += row_step_;
    segment += segment_step_;
    if (segment < row_segments_) return;
    segment -= row_segments_;
    ++row;
  }

 private:
  int row_segments_ = 1;
  int row_step_ = 0;
  int segment_step_ = 0;
};

// The source and size of a bulk copy.
struct Segment {
  const void* weights;
  uint32_t num_bytes;
};

// A warp's position among its segments of all phases.
template <typename Weights>
class SegmentQueue {
 public:
  __device__ __forceinline__ SegmentQueue(const Params& p, int warp) : p_(p), warp_(warp) {
    enter_phase(0);
    skip_empty_phases();
  }
  __device__ __forceinline__ bool is_empty() const { return phase_ == p_.num_gemms; }
  __device__ __forceinline__ Segment front() const {
    return Weights::segment(p_, phase_, range_, cursor_);
  }
  __device__ __forceinline__ void pop() {
    segment_ += kWarps;
    cursor_.advance();
    skip_empty_phases();
  }

 private:
  __device__ __forceinline__ void enter_phase(int phase) {
    phase_ = phase;
    segment_ = warp_;
    if (is_empty()) return;
    range_ = ranges<Weights>()[phase_];
    cursor_ = Cursor(range_, warp_);
  }
  // Skips phases in which this thread block has no columns, or this warp no segments.
  __device__ __forceinline__ void skip_empty_phases() {
    while (!is_empty() && segment_ >= range_.num_segments) enter_phase(phase_ + 1);
  }

  const Params& p_;
  int warp_;
  int phase_ = 0;                  // index of its product
  typename Weights::Range range_;  // of the phase
  int segment_ = 0;                // index among range_.num_segments
  Cursor cursor_;                  // the same position
};

// Loads a warp's segments into its ring; runs on one lane.
template <typename Weights>
class WeightLoader {
 public:
  __device__ __forceinline__ WeightLoader(const Params& p, const Shared& s, int warp)
      : p_(p), s_(s), next_(p, warp) {}

  // Fills the ring.
  __device__ __forceinline__ void begin() {
    for (int i = 0; i < p_.num_stages && !next_.is_empty(); ++i) load(i);
  }
  // Skips the segments that begin() has loaded.
  __device__ __forceinline__ void skip_begin() {
    for (int i = 0; i < p_.num_stages && !next_.is_empty(); ++i) next_.pop();
  }
  // Loads the remaining segments. Each lane waits at the barriers of its own ring, and must make
  // progress independently of the other lanes (independent thread scheduling): with two stages, a
  // lane may have to load for this phase while another lane waits for a release in the next phase.
  __device__ __forceinline__ void run() {
    RingPosition at;
    while (!next_.is_empty()) {
      s_.released[at.stage].wait(at.parity);
      load(at.stage);
      at.advance(p_.num_stages);
    }
  }

 private:
  __device__ __forceinline__ void load(int stage) {
    const Segment segment = next_.front();
    Mbarrier& arrived = s_.arrived[stage];
    arrived.arrive_expecting(segment.num_bytes);
    copy_bulk_evict_first(s_.ring + stage * p_.stage_bytes, segment.weights, segment.num_bytes,
                          arrived);
    next_.pop();
  }

  const Params& p_;
  const Shared& s_;
  SegmentQueue<Weights> next_;
};

// Stores the columns that this thread block computed.
template <typename Weights>
__device__ __forceinline__ void store_columns(const Gemm& gemm,
                                              const typename Weights::Range& range,
                                              const Shared& s) {
  using T = typename Weights::Element;
  T* out = static_cast<T*>(gemm.out) + range.first_column;
  for (int i = static_cast<int>(threadIdx.x); i < range.num_columns; i += kThreads) {
    out[i] = Weights::product(range, s, i);
  }
}

// silu(gate) * up for one of the thread block's columns.
template <typename Weights>
__device__ __forceinline__ float gated_product(const typename Weights::Range& range,
                                               const Shared& s, int column) {
  const float gate = to_float(Weights::product(range, s, 2 * column));
  const float up = to_float(Weights::product(range, s, 2 * column + 1));
  return __fdividef(gate, 1.0F + __expf(-gate)) * up;
}

// A grid barrier: a counter of arrivals that only increases, by gridDim.x per barrier. One thread
// per thread block increments it.
class GridBarrier {
 public:
  // Must be constructed after the wait for the previous kernel. No thread block can pass the first
  // barrier before this thread block arrives at it, so a count above the last multiple of gridDim.x
  // belongs to the first barrier.
  __device__ __forceinline__ explicit GridBarrier(uint64_t* arrivals) : arrivals_(arrivals) {
    if (threadIdx.x != 0) return;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(begin_) : "l"(arrivals_));
  }
  // Waits for all thread blocks. Afterwards, data that they wrote must be read by __ldcg or bulk
  // copies, because the L1 may hold older data.
  __device__ __forceinline__ void wait() {
    sync_consumers();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(reinterpret_cast<unsigned long long*>(arrivals_), 1ULL);
      // Divides while other thread blocks arrive.
      if (num_waits_ == 0) begin_ = begin_ / gridDim.x * gridDim.x;
      const uint64_t complete = begin_ + ++num_waits_ * gridDim.x;
      while (load() < complete) {
      }
    }
    sync_consumers();
  }

 private:
  __device__ __forceinline__ uint64_t load() const {
    uint64_t count = 0;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(count) : "l"(arrivals_) : "memory");
    return count;
  }

  uint64_t* arrivals_;
  uint64_t begin_ = 0;
  unsigned num_waits_ = 0;
};

// residual += delta, in the columns of the thread block.
template <typename Weights>
__device__ __forceinline__ void add_columns(const Params& p, const typename Weights::Range& range,
                                            const Shared& s) {
  using T = typename Weights::Element;
  T* const own = reinterpret_cast<T*>(s.residual);
  for (int i = static_cast<int>(threadIdx.x); i < range.num_columns; i += kThreads) {
    own[i] = from_float<T>(to_float(own[i]) + to_float(Weights::product(range, s, i)));
    static_cast<T*>(p.residual)[range.first_column + i] = own[i];
  }
}

// residual += the sum of the ranks' deltas, in the columns of the thread block.
template <typename Weights, int kRanks>
__device__ __forceinline__ void add_columns(const Params& p, const typename Weights::Range& range,
                                            const Shared& s, const PeerRow<kRanks>& peers) {
  using T = typename Weights::Element;
  T* const own = reinterpret_cast<T*>(s.residual);
  const auto place = [&](int i) { return (range.first_column + i) * int64_t{sizeof(T)}; };
  const auto pair = [&](int i) {
    const Vec<T, 2> delta = {Weights::product(range, s, i), Weights::product(range, s, i + 1)};
    return marked(reinterpret_cast<const uint32_t&>(delta));
  };
  const int first = static_cast<int>(threadIdx.x) * 2;
  for (int i = first; i < range.num_columns; i += kThreads * 2) {
    peers.send_to_others(place(i), pair(i));
  }
  for (int i = first; i < range.num_columns; i += kThreads * 2) {
    float sums[2];
    peers.template receive_sums<T>(place(i), pair(i), sums);
    own[i] = from_float<T>(to_float(own[i]) + sums[0]);
    own[i + 1] = from_float<T>(to_float(own[i + 1]) + sums[1]);
    store_vec(static_cast<T*>(p.residual) + range.first_column + i, Vec<T, 2>{own[i], own[i + 1]});
  }
}

// The sums over the ranks after kO and after kDown, and the slots of their inboxes.
template <int kRanks>
struct RankSums {
  PeerRow<kRanks> after_o;
  PeerRow<kRanks> after_down;

  __device__ __forceinline__ explicit RankSums(const PeerInboxes& peers)
      : after_o(peers, kTailSlot), after_down(peers, kTailSlot + 1) {
    const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
    after_o.refill(thread, gridDim.x * kThreads);
    after_down.refill(thread, gridDim.x * kThreads);
  }
  template <typename Weights>
  __device__ __forceinline__ void add_columns(const Params& p, int phase,
                                              const typename Weights::Range& range,
                                              const Shared& s) const {
    const PeerRow<kRanks> peers = phase == kO ? after_o : after_down;
    tail::add_columns<Weights, kRanks>(p, range, s, peers);
  }
  // Called by one thread after a grid barrier. The last layer does not sum after kDown.
  __device__ __forceinline__ void end(const Params& p) const {
    const int64_t num_bytes = int64_t{p.hidden} * 2;
    after_o.end(num_bytes);
    if (p.num_gemms == kMaxGemms) after_down.end(num_bytes);
  }
};
template <>
struct RankSums<1> {
  __device__ __forceinline__ explicit RankSums(const PeerInboxes& /*peers*/) {}
  template <typename Weights>
  __device__ __forceinline__ void add_columns(const Params& p, int /*phase*/,
                                              const typename Weights::Range& range,
                                              const Shared& s) const {
    tail::add_columns<Weights>(p, range, s);
  }
  __device__ __forceinline__ void end(const Params& /*p*/) const {}
};

template <typename Weights, int kRanks>
__device__ __forceinline__ void run_phases(const Params& p, const Shared& s) {
  using T = typename Weights::Element;
  GridBarrier barrier(p.arrivals);
  const RankSums<kRanks> sums(p.peers);
  const typename Weights::Range& own = ranges<Weights>()[kO];
  for (int i = static_cast<int>(threadIdx.x); i < own.num_columns; i += kThreads) {
    reinterpret_cast<T*>(s.residual)[i] = static_cast<const T*>(p.residual)[own.first_column + i];
  }
  typename Weights::X x(p, s);
  x.load_attention();
  sync_consumers();
  RingPosition at;
  for (int phase = 0;; ++phase) {
    const Gemm& gemm = p.gemms[phase];
    const typename Weights::Range range = ranges<Weights>()[phase];
    const bool has_norm = phase != kGateUp;
    x.prepare(phase, range);
    Weights::multiply(p, phase, range, s, x, at);
    if (phase + 1 == p.num_gemms) {
      store_columns<Weights>(gemm, range, s);
      break;
    }
    if (has_norm) sums.template add_columns<Weights>(p, phase, range, s);
    x.publish(phase, range);
    barrier.wait();
    x.load(phase);
    sync_consumers();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) sums.end(p);
}

#endif

// Uses at most half of an SM's registers, so that a thread block of attention can use the other
// half.
template <typename Weights, int kRanks>
__global__ void __launch_bounds__(kBlockThreads, 2)
    layer_tail_gemm_kernel(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (const int i = static_cast<int>(threadIdx.x); i < kWarps * p.num_stages) {
    const Shared s = shared_of(p, memory, 0);  // followed by the barriers of the other warps
    s.arrived[i].init();
    s.released[i].init();
    publish_barriers();
  }
  if (static_cast<int>(threadIdx.x) < p.num_gemms) {
    ranges<Weights>()[threadIdx.x] = Weights::range_of(
        p.gemms[threadIdx.x], static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
  }
  __syncthreads();
  if (warp == kWarps) {
    const Shared s = shared_of(p, memory, lane % kWarps);
    WeightLoader<Weights> loader(p, s, lane % kWarps);
    loader.skip_begin();
    if (lane < kWarps) loader.run();
    return;
  }
  const Shared s = shared_of(p, memory, warp);
  if (lane == 0) WeightLoader<Weights>(p, s, warp).begin();
  __syncwarp();
  trigger_dependent_launch();
  wait_for_previous_kernel();
  run_phases<Weights, kRanks>(p, s);
#endif
}

// Calls body(ranks) with the number of ranks as a constant.
template <typename Body>
void with_ranks(int num_ranks, const Body& body) {
  if (num_ranks <= 1) return body(std::integral_constant<int, 1>());
  with_max_ranks(num_ranks, body);
}

// A cooperative launch guarantees that all thread blocks are resident at the same time, also if
// other streams run kernels. The grid barrier requires that.
template <typename Weights, int kRanks>
void launch(const LaunchContext& context, int num_blocks, const Params& p) {
  const LaunchShape shape = {.grid = static_cast<unsigned>(num_blocks),
                             .block = kBlockThreads,
                             .shared_bytes = shared_layout(p).num_bytes,
                             .overlap_start = context.overlap_start,
                             .cooperative = true};
  QUIRE_LAUNCH(*context.stream, (layer_tail_gemm_kernel<Weights, kRanks>), shape, p);
}

}  // namespace quire::cuda::tail
