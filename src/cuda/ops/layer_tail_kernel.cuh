// Everything between the attention of two layers for one token row, as one cooperative launch with
// one thread block per SM. The products follow one another, each in a phase:
//
//   phase    x in shared memory    product                            behind it
//   kO       attention             delta = o * x                      residual += delta; x = norm
//   kGateUp  norm of residual      product = silu(gate * x) * up * x  x = product
//   kDown    product               delta = down * x                   residual += delta; x = norm
//   kQkv     norm of residual      qkv = next_qkv * x
//
// The last layer has no kQkv, and its kDown stores delta. Every thread block normalizes the whole
// row for itself.
//
// Each thread block computes a contiguous range of every product's columns (ColumnRange). Its warps
// take segments of the weights' rows in turn, each with a partial sum in shared memory; the sums of
// a row are added in order, so that every run has the same bits.
//
// Each warp has a ring of stages in shared memory. Its lane 0 is the producer (WeightLoader), all
// 32 lanes are the consumer (multiply_range):
//
//   WeightLoader                             multiply_range
//   bulk copy -> stage i  --- arrived[i] --> wait for arrived[i]; stage i -> registers
//   next segment -> stage i <- __syncwarp -- all lanes have read stage i
//                                            sums[segment] = warp_sum(w * x)
//
// No kernel writes weights, so the loader runs ahead of the consumer across phases, and starts
// before the wait for the previous kernel. Memory thus stays busy while thread blocks wait for each
// other.
//
// One phase, and the data that each barrier makes safe:
//
//   multiply_range                    reads x, writes sums
//   __syncthreads                     sums, for other warps; x may be overwritten
//   store_columns or add_columns      reads sums, writes the range's columns to memory
//   GridBarrier::wait                 these, for other thread blocks
//   copy_row or norm_row              reads the whole row past the L1, writes x
//   __syncthreads                     x, for other warps
//
// kO and kDown have the same ranges, which are those of the residual: a thread block keeps its
// columns of it in shared memory, and alone writes them.
//
// With several ranks, each computes its part of the layer, and both deltas are sums over the ranks.
// A thread block sends its columns to the same one of the other ranks (peer_rows.cuh), and adds the
// parts in the order of the ranks. All ranks add the same words, so their residuals have the same
// bits.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/layer_tail.h"
#include "cuda/ops/peer_rows.cuh"

namespace quire::cuda::tail {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Vectors of norm weights that a thread loads in advance; longer rows read the rest when they need
// it.
constexpr int kPreloadedVecs = 2;

struct Shared {
  unsigned char* ring;  // of this warp
  Mbarrier* arrived;    // per stage: its bytes have arrived
  unsigned char* x;
  unsigned char* residual;  // the columns of this thread block
  float* sums;
};

__device__ __forceinline__ Shared shared_of(const Params& p, unsigned char* memory) {
  const SharedLayout layout = shared_layout(p);
  const int first_stage = static_cast<int>(threadIdx.x) / 32 * p.num_stages;
  Shared s;
  s.ring = memory + first_stage * kSegmentBytes;
  s.arrived = reinterpret_cast<Mbarrier*>(memory + layout.barriers) + first_stage;
  s.x = memory + layout.x;
  s.residual = memory + layout.residual;
  s.sums = reinterpret_cast<float*>(memory + layout.sums);
  return s;
}

__device__ __forceinline__ ColumnRange range_of_block(const Gemm& gemm) {
  return column_range(gemm, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

// A warp's position among the segments of a range, of which it takes every kWarps-th: the row of w,
// and the segment of that row. Advancing needs no division.
struct Cursor {
  int row = 0;
  int segment = 0;

  __device__ __forceinline__ explicit Cursor(int row_segments)
      : row_segments_(row_segments),
        row_step_(kWarps / row_segments),
        segment_step_(kWarps % row_segments) {
    const auto warp = static_cast<int>(threadIdx.x) / 32;
    row = warp / row_segments;
    segment = warp % row_segments;
  }
  __device__ __forceinline__ void advance() {
    row += row_step_;
    segment += segment_step_;
    if (segment < row_segments_) return;
    segment -= row_segments_;
    ++row;
  }

 private:
  int row_segments_;
  int row_step_;
  int segment_step_;
};

// Issues the bulk copies of a warp's segments; runs on one lane.
class WeightLoader {
 public:
  __device__ __forceinline__ WeightLoader(const Params& p, const Shared& s) : p_(p), s_(s) {
    enter_phase(0);
  }

  // Starts the copy of the next segment, of this or a later phase, into the next stage, whose
  // content all lanes have read. Returns false if no segment is left.
  __device__ __forceinline__ bool load_next() {
    if (!skip_empty_phases()) return false;
    const Source source = next_source();
    Mbarrier& arrived = s_.arrived[stage_];
    arrived.arrive_expecting(source.num_bytes);
    copy_bulk_evict_first(s_.ring + stage_ * kSegmentBytes, source.weights, source.num_bytes,
                          arrived);
    advance();
    if (++stage_ == p_.num_stages) stage_ = 0;
    return true;
  }

  // Prefetches the rest of the first product's weights into the L2.
  __device__ __forceinline__ void prefetch_first_phase() {
    if (phase_ > 0) return;
    const int segment = segment_;
    const Cursor cursor = cursor_;
    for (; segment_ < range_.num_segments; advance()) {
      const Source source = next_source();
      prefetch_bulk(source.weights, source.num_bytes);
    }
    segment_ = segment;
    cursor_ = cursor;
  }

 private:
  struct Source {
    const void* weights;
    uint32_t num_bytes;
  };

  __device__ __forceinline__ void enter_phase(int phase) {
    phase_ = phase;
    segment_ = static_cast<int>(threadIdx.x) / 32;
    if (phase_ == p_.num_gemms) return;
    range_ = range_of_block(p_.gemms[phase_]);
    cursor_ = Cursor(range_.row_segments);
  }
  __device__ __forceinline__ void advance() {
    segment_ += kWarps;
    cursor_.advance();
  }
  // A thread block may have no columns of a product, and a warp no segments of them. Returns false
  // behind the last phase.
  __device__ __forceinline__ bool skip_empty_phases() {
    while (phase_ < p_.num_gemms && segment_ >= range_.num_segments) enter_phase(phase_ + 1);
    return phase_ < p_.num_gemms;
  }
  __device__ __forceinline__ Source next_source() const {
    const Gemm& gemm = p_.gemms[phase_];
    const int first = cursor_.segment * kSegment;
    int row = cursor_.row;
    if (phase_ == kGateUp) row = row / 2 + row % 2 * gemm.n;
    const int64_t at = int64_t{range_.first_column + row} * gemm.k + first;
    return {static_cast<const unsigned char*>(gemm.w) + at * 2,
            static_cast<uint32_t>(min(kSegment, gemm.k - first)) * 2};
  }

  const Params& p_;
  const Shared& s_;
  int phase_ = 0;      // index of its product
  ColumnRange range_;  // of the phase
  int segment_ = 0;    // index among range_.num_segments
  Cursor cursor_{1};   // the same position
  int stage_ = 0;
};

template <typename T>
__device__ __forceinline__ Vec<T, kVec> load_shared(const unsigned char* base, int vec) {
  return reinterpret_cast<const Vec<T, kVec>*>(base)[vec];
}

template <typename T>
__device__ __forceinline__ void store_shared(unsigned char* base, int vec,
                                             const Vec<T, kVec>& value) {
  reinterpret_cast<Vec<T, kVec>*>(base)[vec] = value;
}

// Loads data that another thread block wrote in this kernel, past the L1, which may hold an older
// copy.
template <typename T>
__device__ __forceinline__ Vec<T, kVec> load_written(const void* base, int vec) {
  const uint4 bits = __ldcg(static_cast<const uint4*>(base) + vec);
  return *reinterpret_cast<const Vec<T, kVec>*>(&bits);
}

template <typename T>
__device__ __forceinline__ float dot(const Vec<T, kVec>& a, const Vec<T, kVec>& b, float sum) {
#pragma unroll
  for (int j = 0; j < kVec; ++j) sum = fmaf(to_float(a.v[j]), to_float(b.v[j]), sum);
  return sum;
}

// Multiplies a segment with its part of x; returns the lane's part of the sum. Calls `release` once
// the segment has been read, so that its stage is refilled early.
template <typename T, typename Release>
__device__ __forceinline__ float multiply_segment(const unsigned char* w, const unsigned char* x,
                                                  int num_vecs, int lane, const Release& release) {
  constexpr int kLaneVecs = kSegment / kVec / 32;
  float sums[2] = {};
  if (num_vecs == kSegment / kVec) {
    Vec<T, kVec> weights[kLaneVecs];
#pragma unroll
    for (int i = 0; i < kLaneVecs; ++i) weights[i] = load_shared<T>(w, i * 32 + lane);
    release();
#pragma unroll
    for (int i = 0; i < kLaneVecs; ++i) {
      sums[i % 2] = dot(weights[i], load_shared<T>(x, i * 32 + lane), sums[i % 2]);
    }
  } else {
    for (int i = lane; i < num_vecs; i += 32) {
      sums[0] = dot(load_shared<T>(w, i), load_shared<T>(x, i), sums[0]);
    }
    release();
  }
  return sums[0] + sums[1];
}

// A consumer's position in its warp's ring.
struct Stage {
  int idx = 0;
  uint32_t parity = 0;
};

// Multiplies a warp's segments of a range with x; writes one partial sum per segment.
template <typename T>
__device__ __forceinline__ void multiply_range(const Params& p, const Gemm& gemm,
                                               const ColumnRange& range, const Shared& s,
                                               WeightLoader& loader, Stage& stage) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const auto refill = [&] {
    __syncwarp();
    if (lane == 0) loader.load_next();
  };
  Cursor cursor(range.row_segments);
  for (int segment = warp; segment < range.num_segments; segment += kWarps, cursor.advance()) {
    const int first = cursor.segment * kSegment;
    s.arrived[stage.idx].wait(stage.parity);
    const float part = multiply_segment<T>(s.ring + stage.idx * kSegmentBytes, s.x + first * 2,
                                           min(kSegment, gemm.k - first) / kVec, lane, refill);
    const float sum = warp_sum(part);
    if (lane == 0) s.sums[segment] = sum;
    if (++stage.idx == p.num_stages) {
      stage.idx = 0;
      stage.parity ^= 1;
    }
  }
}

// The product of a row of the range.
template <typename T>
__device__ __forceinline__ T row_product(const ColumnRange& range, const Shared& s, int row) {
  const float* sums = s.sums + row * range.row_segments;
  float sum = 0;
  for (int i = 0; i < range.row_segments; ++i) sum += sums[i];
  return from_float<T>(sum);
}

// Stores the columns that this thread block computed.
template <typename T>
__device__ __forceinline__ void store_columns(const Gemm& gemm, const ColumnRange& range,
                                              const Shared& s) {
  T* out = static_cast<T*>(gemm.out) + range.first_column;
  for (int i = static_cast<int>(threadIdx.x); i < range.num_columns; i += kThreads) {
    if (gemm.rows_per_column == 1) {
      out[i] = row_product<T>(range, s, i);
      continue;
    }
    const float gate = to_float(row_product<T>(range, s, 2 * i));
    const float up = to_float(row_product<T>(range, s, 2 * i + 1));
    out[i] = from_float<T>(__fdividef(gate, 1.0F + __expf(-gate)) * up);
  }
}

// A grid barrier: a counter of arrivals that only grows, by gridDim.x per barrier. One thread per
// thread block counts.
class GridBarrier {
 public:
  // Constructed after the wait for the previous kernel. No thread block can pass the first barrier
  // before this one arrives at it, so a count above the last multiple of gridDim.x belongs to that
  // barrier.
  __device__ __forceinline__ explicit GridBarrier(uint64_t* arrivals) : arrivals_(arrivals) {
    if (threadIdx.x == 0) complete_ = load() / gridDim.x * gridDim.x;
  }
  // Waits for every thread block. Their writes must then be read past the L1.
  __device__ __forceinline__ void wait() {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(reinterpret_cast<unsigned long long*>(arrivals_), 1ULL);
      complete_ += gridDim.x;
      while (load() < complete_) {
      }
    }
    __syncthreads();
  }

 private:
  __device__ __forceinline__ uint64_t load() const {
    uint64_t count = 0;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(count) : "l"(arrivals_) : "memory");
    return count;
  }

  uint64_t* arrivals_;
  uint64_t complete_ = 0;
};

// A thread's first norm weights, loaded while the product before the norm is computed.
struct PreloadedWeights {
  float v[kPreloadedVecs][kVec];

  __device__ __forceinline__ void load(const float* weights, int num_vecs) {
#pragma unroll
    for (int i = 0; i < kPreloadedVecs; ++i) {
      const int vec = static_cast<int>(threadIdx.x) + i * kThreads;
      if (vec >= num_vecs) continue;
      const auto low = load_vec<4>(weights + vec * kVec);
      const auto high = load_vec<4>(weights + vec * kVec + 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        v[i][j] = low.v[j];
        v[i][j + 4] = high.v[j];
      }
    }
  }
};

// residual += delta, in the columns of the thread block.
template <typename T>
__device__ __forceinline__ void add_columns(const Params& p, const ColumnRange& range,
                                            const Shared& s) {
  T* const own = reinterpret_cast<T*>(s.residual);
  for (int i = static_cast<int>(threadIdx.x); i < range.num_columns; i += kThreads) {
    own[i] = from_float<T>(to_float(own[i]) + to_float(row_product<T>(range, s, i)));
    static_cast<T*>(p.residual)[range.first_column + i] = own[i];
  }
}

// The same with the sum of the ranks' deltas.
template <typename T, int kRanks>
__device__ __forceinline__ void add_columns(const Params& p, const ColumnRange& range,
                                            const Shared& s, const PeerRow<kRanks>& peers) {
  T* const own = reinterpret_cast<T*>(s.residual);
  const auto place = [&](int i) { return (range.first_column + i) * int64_t{sizeof(T)}; };
  const auto pair = [&](int i) {
    const Vec<T, 2> delta = {row_product<T>(range, s, i), row_product<T>(range, s, i + 1)};
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

// x = norm(residual). Every thread block computes it for itself.
template <typename T>
__device__ __forceinline__ void norm_row(const Params& p, const Shared& s, const float* weights,
                                         const PreloadedWeights& preloaded) {
  const int num_vecs = p.hidden / kVec;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < num_vecs; i += kThreads) {
    const Vec<T, kVec> value = load_written<T>(p.residual, i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares += to_float(value.v[j]) * to_float(value.v[j]);
    store_shared(s.x, i, value);
  }
  const float scale = 1.0F / sqrtf(block_sum(squares) / static_cast<float>(p.hidden) + p.eps);
  const auto scaled = [&](int vec, const auto& weight) {
    Vec<T, kVec> value = load_shared<T>(s.x, vec);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      value.v[j] = from_float<T>(to_float(value.v[j]) * scale * weight[j]);
    }
    store_shared(s.x, vec, value);
  };
#pragma unroll
  for (int i = 0; i < kPreloadedVecs; ++i) {
    const int vec = static_cast<int>(threadIdx.x) + i * kThreads;
    if (vec < num_vecs) scaled(vec, preloaded.v[i]);
  }
  for (int vec = static_cast<int>(threadIdx.x) + kPreloadedVecs * kThreads; vec < num_vecs;
       vec += kThreads) {
    scaled(vec, weights + vec * kVec);
  }
}

template <typename T>
__device__ __forceinline__ void copy_row(unsigned char* shared, const void* row, int width) {
  for (int i = static_cast<int>(threadIdx.x); i < width / kVec; i += kThreads) {
    store_shared(shared, i, load_written<T>(row, i));
  }
}

// The sums over the ranks behind kO and kDown, and the slots of their inboxes.
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
  template <typename T>
  __device__ __forceinline__ void add_columns(const Params& p, int phase, const ColumnRange& range,
                                              const Shared& s) const {
    const PeerRow<kRanks> peers = phase == kO ? after_o : after_down;
    tail::add_columns<T, kRanks>(p, range, s, peers);
  }
  // Called by one thread after a grid barrier. The last layer does not sum behind kDown.
  __device__ __forceinline__ void end(const Params& p) const {
    const int64_t num_bytes = int64_t{p.hidden} * 2;
    after_o.end(num_bytes);
    if (p.num_gemms == kMaxGemms) after_down.end(num_bytes);
  }
};
template <>
struct RankSums<1> {
  __device__ __forceinline__ explicit RankSums(const PeerInboxes& /*peers*/) {}
  template <typename T>
  __device__ __forceinline__ void add_columns(const Params& p, int /*phase*/,
                                              const ColumnRange& range, const Shared& s) const {
    tail::add_columns<T>(p, range, s);
  }
  __device__ __forceinline__ void end(const Params& /*p*/) const {}
};

template <typename T, int kRanks>
__device__ __forceinline__ void run_phases(const Params& p, const Shared& s, WeightLoader& loader) {
  GridBarrier barrier(p.arrivals);
  const RankSums<kRanks> sums(p.peers);
  const ColumnRange own = range_of_block(p.gemms[kO]);
  for (int i = static_cast<int>(threadIdx.x); i < own.num_columns; i += kThreads) {
    reinterpret_cast<T*>(s.residual)[i] = static_cast<const T*>(p.residual)[own.first_column + i];
  }
  copy_row<T>(s.x, p.attention, p.gemms[kO].k);
  __syncthreads();
  Stage stage;
  for (int phase = 0;; ++phase) {
    const Gemm& gemm = p.gemms[phase];
    const ColumnRange range = range_of_block(gemm);
    const bool is_last = phase + 1 == p.num_gemms;
    const bool has_norm = phase != kGateUp && !is_last;
    const float* norm_weights = p.norms[phase / kDown];
    PreloadedWeights preloaded;
    if (has_norm) preloaded.load(norm_weights, p.hidden / kVec);
    multiply_range<T>(p, gemm, range, s, loader, stage);
    __syncthreads();
    if (has_norm) {
      sums.template add_columns<T>(p, phase, range, s);
    } else {
      store_columns<T>(gemm, range, s);
    }
    if (is_last) break;
    barrier.wait();
    if (has_norm) {
      norm_row<T>(p, s, norm_weights, preloaded);
    } else {
      copy_row<T>(s.x, gemm.out, gemm.n);
    }
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) sums.end(p);
}

#endif

// At most half of an SM's registers, which leaves the others to a thread block of attention.
template <typename T, int kRanks>
__global__ void __launch_bounds__(kThreads, 2)
    layer_tail_gemm_kernel(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  const Shared s = shared_of(p, memory);
  WeightLoader loader(p, s);
  if (threadIdx.x % 32 == 0) {
    for (int i = 0; i < p.num_stages; ++i) s.arrived[i].init();
    publish_barriers();
    for (int i = 0; i < p.num_stages && loader.load_next(); ++i) {
    }
    loader.prefetch_first_phase();
  }
  __syncwarp();
  trigger_dependent_launch();
  wait_for_previous_kernel();
  run_phases<T, kRanks>(p, s, loader);
#endif
}

}  // namespace quire::cuda::tail
