// The weights that each thread block of the layer tail's kernel reads, and its layout of shared
// memory. The kernel and its launch share these definitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define QUIRE_BOTH_SIDES __host__ __device__
#else
#define QUIRE_BOTH_SIDES
#endif

namespace quire::cuda {

inline constexpr int kTailWarps = 8;
// Elements of K of one row that a warp loads per stage. Halving this (with twice the stages) is 20
// % slower on an H200, because each SM then issues too many bulk copies.
inline constexpr int kTailSegment = 2048;
inline constexpr int kTailSegmentBytes = kTailSegment * 2;
inline constexpr int kTailMaxPhases = 4;

enum TailPhaseIdx { kTailO, kTailGateUp, kTailDown, kTailQkv };

struct TailPhase {
  const void* w = nullptr;
  void* out = nullptr;
  int n = 0;  // columns of out; for gate and up, w has 2 n rows
  int k = 0;
  int rows_per_column = 1;
};

// A thread block's range of a phase's columns, and its segments of w.
struct TailShare {
  int first_column;
  int num_columns;
  int num_segments;  // per row of w
  int num_items;     // segments of all rows
};

QUIRE_BOTH_SIDES inline int num_tail_segments(const TailPhase& phase) {
  return (phase.k + kTailSegment - 1) / kTailSegment;
}

QUIRE_BOTH_SIDES inline TailShare tail_share(const TailPhase& phase, int block, int num_blocks) {
  TailShare share = {};
  share.first_column = static_cast<int>(int64_t{phase.n} * block / num_blocks);
  const auto end = static_cast<int>(int64_t{phase.n} * (block + 1) / num_blocks);
  share.num_columns = end - share.first_column;
  share.num_segments = num_tail_segments(phase);
  share.num_items = share.num_columns * phase.rows_per_column * share.num_segments;
  return share;
}

struct TailParams {
  TailPhase phases[kTailMaxPhases];
  int num_phases = 0;
  int num_stages = 0;  // of a warp's ring; 0: does not fit
  int max_k = 0;
  int max_items = 0;  // the most of a thread block in a phase
  int hidden = 0;
  const void* attention = nullptr;
  void* residual = nullptr;
  const float* norms[2] = {};
  float eps = 0;
  uint64_t* arrivals = nullptr;  // grid barrier; a multiple of gridDim.x between launches
};

// Offsets in shared memory. The rings come first.
struct TailLayout {
  size_t x;
  size_t residual;
  size_t sums;
  size_t barriers;
  size_t num_bytes;
};

QUIRE_BOTH_SIDES inline TailLayout tail_layout(const TailParams& params) {
  const auto aligned = [](size_t bytes) { return (bytes + 127) / 128 * 128; };
  const size_t num_slots = size_t{kTailWarps} * static_cast<size_t>(params.num_stages);
  TailLayout layout = {};
  layout.x = num_slots * kTailSegmentBytes;
  layout.residual = aligned(layout.x + static_cast<size_t>(params.max_k) * 2);
  layout.sums = aligned(layout.residual + static_cast<size_t>(params.hidden) * 2);
  layout.barriers = aligned(layout.sums + static_cast<size_t>(params.max_items) * sizeof(float));
  layout.num_bytes = layout.barriers + num_slots * sizeof(uint64_t);
  return layout;
}

// Items of the largest share: the numbers of columns differ by at most one.
inline int max_tail_items(const TailPhase& phase, int num_blocks) {
  const int num_columns = (phase.n + num_blocks - 1) / num_blocks;
  return num_columns * phase.rows_per_column * num_tail_segments(phase);
}

inline void add_tail_phase(TailParams& params, const TailPhase& phase, int num_blocks) {
  params.max_k = std::max(params.max_k, phase.k);
  params.max_items = std::max(params.max_items, max_tail_items(phase, num_blocks));
  params.phases[params.num_phases++] = phase;
}

// Shared memory for a thread block of the tail, in bytes.
struct TailSharedMemory {
  size_t per_block;         // limit per thread block
  size_t beside_attention;  // left on the SM beside one XQA thread block
};

// Upper bound of the shared memory of XQA's decode kernels over a 16-bit cache, per thread block
// (53,888 bytes at head_dim 128); a GPU test compares it with the kernels. Kernels over an FP8
// cache take 112,256 bytes, which leaves too little for a ring of useful depth.
inline constexpr size_t kTailAttentionBytes = size_t{54} << 10;

// Chooses the depth of the rings. They fill while attention runs, so they leave shared memory for a
// thread block of attention on the same SM. Otherwise attention starts only after the previous tail
// has ended, and the next tail starts with empty rings. If even the shallowest rings leave too
// little, they take up to the limit per thread block.
inline void fit_tail_rings(TailParams& params, const TailSharedMemory& shared_memory) {
  constexpr int kMaxStages = 4;
  constexpr int kMinStages = 2;
  const size_t most_beside_attention =
      std::min(shared_memory.per_block, shared_memory.beside_attention);
  for (const size_t most : {most_beside_attention, shared_memory.per_block}) {
    for (params.num_stages = kMaxStages; params.num_stages >= kMinStages; --params.num_stages) {
      if (tail_layout(params).num_bytes <= most) return;
    }
  }
  params.num_stages = 0;
}

}  // namespace quire::cuda

#undef QUIRE_BOTH_SIDES
