// One thread block per SM computes four products, one after the other, each a phase:
//
// delta = o * attention; residual += delta, norm; product = silu(gate) * up; delta = down *
// product; residual += delta, norm; qkv.
//
// Each thread block computes a contiguous range of every product's columns. Its warps take segments
// of the weights' rows in turn, each with a partial sum; the partial sums of a row are added in
// order.
//
// No kernel writes weights. Each warp loads its segments by bulk copies into its own ring in shared
// memory. The ring is filled ahead of use, across phases and before the wait for the previous
// kernel, so that memory stays busy while thread blocks wait for each other.
#pragma once

#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/layer_tail_plan.h"

namespace quire::cuda::tail {

constexpr int kThreads = kTailWarps * 32;
constexpr int kVec = 8;  // elements of a 16-byte access

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Vectors of norm weights that a thread loads in advance; longer rows read the rest when they need
// it.
constexpr int kHeldVecs = 2;

struct Shared {
  unsigned char* ring;   // of this warp
  Mbarrier* arrived;     // per stage: its bytes have arrived
  unsigned char* x;
  unsigned char* residual;
  float* sums;
};

__device__ __forceinline__ Shared shared_of(const TailParams& p, unsigned char* memory) {
  const TailLayout layout = tail_layout(p);
  const int first_slot = static_cast<int>(threadIdx.x) / 32 * p.num_stages;
  Shared s;
  s.ring = memory + first_slot * kTailSegmentBytes;
  s.arrived = reinterpret_cast<Mbarrier*>(memory + layout.barriers) + first_slot;
  s.x = memory + layout.x;
  s.residual = memory + layout.residual;
  s.sums = reinterpret_cast<float*>(memory + layout.sums);
  return s;
}

__device__ __forceinline__ TailShare share_of_block(const TailPhase& phase) {
  return tail_share(phase, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

// A warp's position among the items of a phase, of which it takes every kTailWarps-th. Advancing
// needs no division.
struct Cursor {
  int row = 0;
  int segment = 0;

  __device__ __forceinline__ explicit Cursor(int num_segments)
      : num_segments_(num_segments),
        row_step_(kTailWarps / num_segments),
        segment_step_(kTailWarps % num_segments) {
    const auto warp = static_cast<int>(threadIdx.x) / 32;
    row = warp / num_segments;
    segment = warp % num_segments;
  }
  __device__ __forceinline__ void advance() {
    row += row_step_;
    segment += segment_step_;
    if (segment < num_segments_) return;
    segment -= num_segments_;
    ++row;
  }

 private:
  int num_segments_;
  int row_step_;
  int segment_step_;
};

// Issues the bulk copies of a warp's segments; runs on one lane.
class Reader {
 public:
  __device__ __forceinline__ Reader(const TailParams& p, const Shared& s) : p_(p), s_(s) {
    enter(0);
  }

  // Starts the copy of the next segment, of this or a later phase, into the next stage. Returns
  // false if none is left.
  __device__ __forceinline__ bool read() {
    if (!settle()) return false;
    const Segment segment = next();
    Mbarrier& arrived = s_.arrived[stage_];
    arrived.arrive_expecting(segment.num_bytes);
    copy_bulk_evict_first(s_.ring + stage_ * kTailSegmentBytes, segment.weights, segment.num_bytes,
                          arrived);
    advance();
    if (++stage_ == p_.num_stages) stage_ = 0;
    return true;
  }

  // Prefetches the rest of the first product's weights into the L2.
  __device__ __forceinline__ void prefetch_first_phase() {
    if (phase_ > 0) return;
    const int item = item_;
    const Cursor cursor = cursor_;
    for (; item_ < share_.num_items; advance()) {
      const Segment segment = next();
      prefetch_bulk(segment.weights, segment.num_bytes);
    }
    item_ = item;
    cursor_ = cursor;
  }

 private:
  struct Segment {
    const void* weights;
    uint32_t num_bytes;
  };

  __device__ __forceinline__ void enter(int phase_idx) {
    phase_ = phase_idx;
    item_ = static_cast<int>(threadIdx.x) / 32;
    if (phase_ == p_.num_phases) return;
    share_ = share_of_block(p_.phases[phase_]);
    cursor_ = Cursor(share_.num_segments);
  }
  __device__ __forceinline__ void advance() {
    item_ += kTailWarps;
    cursor_.advance();
  }
  __device__ __forceinline__ bool settle() {
    while (phase_ < p_.num_phases && item_ >= share_.num_items) enter(phase_ + 1);
    return phase_ < p_.num_phases;
  }
  __device__ __forceinline__ Segment next() const {
    const TailPhase& phase = p_.phases[phase_];
    const int first = cursor_.segment * kTailSegment;
    int row = cursor_.row;
    if (phase_ == kTailGateUp) row = row / 2 + row % 2 * phase.n;
    const int64_t at = int64_t{share_.first_column + row} * phase.k + first;
    return {static_cast<const unsigned char*>(phase.w) + at * 2,
            static_cast<uint32_t>(min(kTailSegment, phase.k - first)) * 2};
  }

  const TailParams& p_;
  const Shared& s_;
  int phase_ = 0;
  TailShare share_;
  int item_ = 0;
  Cursor cursor_{1};
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
  constexpr int kLaneVecs = kTailSegment / kVec / 32;
  float sums[2] = {};
  if (num_vecs == kTailSegment / kVec) {
    Vec<T, kVec> held[kLaneVecs];
#pragma unroll
    for (int i = 0; i < kLaneVecs; ++i) held[i] = load_shared<T>(w, i * 32 + lane);
    release();
#pragma unroll
    for (int i = 0; i < kLaneVecs; ++i) {
      sums[i % 2] = dot(held[i], load_shared<T>(x, i * 32 + lane), sums[i % 2]);
    }
  } else {
    for (int i = lane; i < num_vecs; i += 32) {
      sums[0] = dot(load_shared<T>(w, i), load_shared<T>(x, i), sums[0]);
    }
    release();
  }
  return sums[0] + sums[1];
}

// A warp's position in its ring.
struct Stage {
  int idx = 0;
  uint32_t parity = 0;
};

// Computes a warp's items of a phase.
template <typename T>
__device__ __forceinline__ void multiply_phase(const TailParams& p, const TailPhase& phase,
                                               const TailShare& share, const Shared& s,
                                               Reader& reader, Stage& stage) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  const auto refill = [&] {
    __syncwarp();
    if (lane == 0) reader.read();
  };
  Cursor cursor(share.num_segments);
  for (int item = warp; item < share.num_items; item += kTailWarps, cursor.advance()) {
    const int first = cursor.segment * kTailSegment;
    s.arrived[stage.idx].wait(stage.parity);
    const float part = multiply_segment<T>(s.ring + stage.idx * kTailSegmentBytes, s.x + first * 2,
                                           min(kTailSegment, phase.k - first) / kVec, lane, refill);
    const float sum = warp_sum(part);
    if (lane == 0) s.sums[item] = sum;
    if (++stage.idx == p.num_stages) {
      stage.idx = 0;
      stage.parity ^= 1;
    }
  }
}

// Stores the columns that this thread block computed.
template <typename T>
__device__ __forceinline__ void store_columns(const TailPhase& phase, const TailShare& share,
                                              const Shared& s) {
  const auto row_sum = [&](int row) {
    const float* sums = s.sums + row * share.num_segments;
    float sum = 0;
    for (int i = 0; i < share.num_segments; ++i) sum += sums[i];
    return sum;
  };
  T* out = static_cast<T*>(phase.out) + share.first_column;
  for (int i = static_cast<int>(threadIdx.x); i < share.num_columns; i += kThreads) {
    if (phase.rows_per_column == 1) {
      out[i] = from_float<T>(row_sum(i));
      continue;
    }
    const float gate = to_float(from_float<T>(row_sum(2 * i)));
    const float up = to_float(from_float<T>(row_sum(2 * i + 1)));
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

// Norm weights, loaded before they are needed.
struct HeldWeights {
  float v[kHeldVecs][kVec];

  __device__ __forceinline__ void load(const float* weights, int num_vecs) {
#pragma unroll
    for (int held = 0; held < kHeldVecs; ++held) {
      const int vec = static_cast<int>(threadIdx.x) + held * kThreads;
      if (vec >= num_vecs) continue;
      const auto low = load_vec<4>(weights + vec * kVec);
      const auto high = load_vec<4>(weights + vec * kVec + 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        v[held][j] = low.v[j];
        v[held][j + 4] = high.v[j];
      }
    }
  }
};

// residual += delta; x = norm(residual). Every thread block computes it for itself.
template <typename T>
__device__ __forceinline__ void add_and_norm(const TailParams& p, const Shared& s,
                                             const void* delta, const float* weights,
                                             const HeldWeights& held) {
  const int num_vecs = p.hidden / kVec;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < num_vecs; i += kThreads) {
    Vec<T, kVec> value = load_shared<T>(s.residual, i);
    const Vec<T, kVec> add = load_written<T>(delta, i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      value.v[j] = from_float<T>(to_float(value.v[j]) + to_float(add.v[j]));
      squares += to_float(value.v[j]) * to_float(value.v[j]);
    }
    store_shared(s.residual, i, value);
  }
  const float scale = 1.0F / sqrtf(block_sum(squares) / static_cast<float>(p.hidden) + p.eps);
  const auto scaled = [&](int vec, const auto& weight) {
    Vec<T, kVec> value = load_shared<T>(s.residual, vec);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      value.v[j] = from_float<T>(to_float(value.v[j]) * scale * weight[j]);
    }
    store_shared(s.x, vec, value);
  };
#pragma unroll
  for (int i = 0; i < kHeldVecs; ++i) {
    const int vec = static_cast<int>(threadIdx.x) + i * kThreads;
    if (vec < num_vecs) scaled(vec, held.v[i]);
  }
  for (int vec = static_cast<int>(threadIdx.x) + kHeldVecs * kThreads; vec < num_vecs;
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

template <typename T>
__device__ __forceinline__ void run_phases(const TailParams& p, const Shared& s, Reader& reader) {
  GridBarrier barrier(p.arrivals);
  copy_row<T>(s.residual, p.residual, p.hidden);
  copy_row<T>(s.x, p.attention, p.phases[kTailO].k);
  __syncthreads();
  Stage stage;
  const int last_norm = p.num_phases == kTailMaxPhases ? kTailDown : kTailO;
  for (int phase_idx = 0;; ++phase_idx) {
    const TailPhase& phase = p.phases[phase_idx];
    const TailShare share = share_of_block(phase);
    const bool is_last = phase_idx + 1 == p.num_phases;
    const bool norms = phase_idx != kTailGateUp && !is_last;
    const float* weights = p.norms[phase_idx / kTailDown];
    HeldWeights held;
    if (norms) held.load(weights, p.hidden / kVec);
    multiply_phase<T>(p, phase, share, s, reader, stage);
    __syncthreads();
    store_columns<T>(phase, share, s);
    if (is_last) break;
    barrier.wait();
    if (norms) {
      add_and_norm<T>(p, s, phase.out, weights, held);
    } else {
      copy_row<T>(s.x, phase.out, phase.n);
    }
    __syncthreads();
    // Every thread block has read the residual before the first barrier.
    if (blockIdx.x != 0 || phase_idx != last_norm) continue;
    for (int i = static_cast<int>(threadIdx.x); i < p.hidden / kVec; i += kThreads) {
      store_vec(static_cast<T*>(p.residual) + i * kVec, load_shared<T>(s.residual, i));
    }
  }
}

#endif

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    layer_tail_gemm_kernel(const __grid_constant__ TailParams p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  const Shared s = shared_of(p, memory);
  Reader reader(p, s);
  if (threadIdx.x % 32 == 0) {
    for (int i = 0; i < p.num_stages; ++i) s.arrived[i].init();
    publish_barriers();
    for (int i = 0; i < p.num_stages && reader.read(); ++i) {
    }
    reader.prefetch_first_phase();
  }
  __syncwarp();
  trigger_dependent_launch();
  wait_for_previous_kernel();
  run_phases<T>(p, s, reader);
#endif
}

}  // namespace quire::cuda::tail
