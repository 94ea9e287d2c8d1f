// One block a multiprocessor goes through four products, each a phase:
//   delta = o * attention; residual += delta, norm; product = silu(gate) * up; delta = down *
//   product; residual += delta, norm; qkv.
// Each block has a run of every product's columns, in which its warps take segments of rows in
// turn, each with a sum of its own; a row's are added in order.
//
// Weights are nobody's output. A warp brings its segments through a ring of its own in shared
// memory by bulk copies, and the ring runs ahead of the warp, from phase to phase and of the wait
// for the kernel before: memory works while blocks wait for one another.
#pragma once

#include "cuda/device/bulk.cuh"
#include "cuda/device/convert.cuh"
#include "cuda/device/overlap.cuh"
#include "cuda/device/reduce.cuh"
#include "cuda/device/vec.cuh"
#include "cuda/ops/layer_tail_plan.h"

namespace quire::cuda::tail {

constexpr int kThreads = kTailWarps * 32;
constexpr int kVec = 8;  // elements of a 16-byte access

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Vectors of norm weights that a thread holds ahead of need; longer rows read the rest late.
constexpr int kHeldVecs = 2;

struct Shared {
  unsigned char* ring;   // of the warp
  BulkBarrier* arrived;  // a stage's bytes are there
  unsigned char* x;
  unsigned char* residual;
  float* sums;
};

__device__ __forceinline__ Shared shared_of(const TailParams& p, unsigned char* memory) {
  const TailLayout layout = tail_layout(p);
  const int first_slot = static_cast<int>(threadIdx.x) / 32 * p.num_stages;
  Shared s;
  s.ring = memory + first_slot * kTailSegmentBytes;
  s.arrived = reinterpret_cast<BulkBarrier*>(memory + layout.barriers) + first_slot;
  s.x = memory + layout.x;
  s.residual = memory + layout.residual;
  s.sums = reinterpret_cast<float*>(memory + layout.sums);
  return s;
}

__device__ __forceinline__ TailShare share_of_block(const TailPhase& phase) {
  return tail_share(phase, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

// Where a warp is among a phase's items, of which it takes every kTailWarps-th. Advancing costs no
// division.
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

// The segments that a warp has asked memory for: one lane's.
class Reader {
 public:
  __device__ __forceinline__ Reader(const TailParams& p, const Shared& s) : p_(p), s_(s) {
    enter(0);
  }

  // Asks for the next one, of whichever phase, into the next stage; false where none is left.
  __device__ __forceinline__ bool read() {
    if (!settle()) return false;
    const Segment segment = next();
    BulkBarrier& arrived = s_.arrived[stage_];
    arrived.arrive_expecting(segment.num_bytes);
    copy_bulk_once(s_.ring + stage_ * kTailSegmentBytes, segment.weights, segment.num_bytes,
                   arrived);
    advance();
    if (++stage_ == p_.num_stages) stage_ = 0;
    return true;
  }

  // What of the first product is left, into the L2.
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

// What another block wrote in this kernel is not in the L1, or is there too old.
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

// A segment times its part of x: the lane's part of the sum. Calls `release` once the segment has
// been read: the sooner its stage is filled again, the fuller memory's queue.
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

// The stage that a warp is at.
struct Stage {
  int idx = 0;
  uint32_t parity = 0;
};

// A warp's items of a phase.
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

// Stores the columns that this block computed.
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

// Where blocks wait for one another: a counter of arrivals that only grows, by all blocks' number
// at each meeting. One thread of a block counts.
class Meeting {
 public:
  // After the wait: no block can pass the first meeting before this one has come to it, so arrivals
  // beyond the meetings before are this one's.
  __device__ __forceinline__ explicit Meeting(uint64_t* arrivals) : arrivals_(arrivals) {
    if (threadIdx.x == 0) complete_ = load() / gridDim.x * gridDim.x;
  }
  // Until every block is here; what they wrote is then to be read past the L1.
  __device__ __forceinline__ void meet() {
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

// Norm weights ahead of need.
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

// residual += delta; x = norm(residual): each block for itself.
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
  Meeting meeting(p.arrivals);
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
    meeting.meet();
    if (norms) {
      add_and_norm<T>(p, s, phase.out, weights, held);
    } else {
      copy_row<T>(s.x, phase.out, phase.n);
    }
    __syncthreads();
    // Every block read the residual before it came to meet.
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
  let_next_kernel_start();
  wait_for_previous_kernel();
  run_phases<T>(p, s, reader);
#endif
}

}  // namespace quire::cuda::tail
