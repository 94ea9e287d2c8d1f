// All products between two layers' attention in one kernel, for a single token row. There is so
// little arithmetic per weight that memory bandwidth determines the time, provided that memory
// never idles.
//
// This header has the host's interface and, in namespace tail, the plan that the launch and the
// kernel (layer_tail_kernel.cuh) share: the products, each thread block's columns of them, and the
// layout of shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/numbers.h"
#include "cuda/base/memory.h"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/peer_sums.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

#ifdef __CUDACC__
#define QUIRE_BOTH_SIDES __host__ __device__
#else
#define QUIRE_BOTH_SIDES
#endif

namespace quire::cuda {
namespace tail {

inline constexpr int kWarps = 8;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kVec = 8;  // elements of a 16-byte access
// Elements of K of one weight row that a warp loads per stage of its ring. Halving this (with twice
// the stages) is 20 % slower on an H200, because each SM then issues too many bulk copies.
inline constexpr int kSegment = 2048;
inline constexpr int kSegmentBytes = kSegment * 2;
inline constexpr int kMaxGemms = 4;

// The products in the order of their phases; kQkv is absent behind the last layer.
enum GemmIdx { kO, kGateUp, kDown, kQkv };

// One product: out[n] = w[n, k] * x[k].
struct Gemm {
  const void* w = nullptr;
  void* out = nullptr;
  int n = 0;  // columns of out; for gate and up, w has 2 n rows
  int k = 0;
  int rows_per_column = 1;  // rows of w per column of out
  int column_unit = 1;      // a divisor of n: thread blocks divide the columns in units of so many
};

// A thread block's contiguous range of a product's columns, and the segments of w that they need.
struct ColumnRange {
  int first_column;
  int num_columns;
  int row_segments;  // segments per row of w
  int num_segments;  // segments of all rows
};

QUIRE_BOTH_SIDES inline int num_row_segments(const Gemm& gemm) {
  return ceil_div(gemm.k, kSegment);
}

QUIRE_BOTH_SIDES inline ColumnRange column_range(const Gemm& gemm, int block, int num_blocks) {
  ColumnRange range = {};
  const int64_t num_units = gemm.n / gemm.column_unit;
  const auto first = static_cast<int>(num_units * block / num_blocks);
  const auto end = static_cast<int>(num_units * (block + 1) / num_blocks);
  range.first_column = first * gemm.column_unit;
  range.num_columns = (end - first) * gemm.column_unit;
  range.row_segments = num_row_segments(gemm);
  range.num_segments = range.num_columns * gemm.rows_per_column * range.row_segments;
  return range;
}

// The kernel's parameters.
struct Params {
  Gemm gemms[kMaxGemms];
  int num_gemms = 0;
  int num_stages = 0;  // of a warp's ring; 0: does not fit
  int max_k = 0;
  int max_segments = 0;  // the largest number of a thread block in a phase
  int hidden = 0;
  int max_own_columns = 0;  // of the residual, in the largest range
  const void* attention = nullptr;
  void* residual = nullptr;
  const float* norms[2] = {};  // after kO and after kDown
  float eps = 0;
  uint64_t* arrivals = nullptr;  // grid barrier; a multiple of gridDim.x between launches
  PeerInboxes peers;             // num_ranks is 0 without ranks
};

// Offsets in shared memory. The warps' rings come first.
struct SharedLayout {
  size_t x;
  size_t residual;
  size_t sums;
  size_t barriers;
  size_t num_bytes;
};

QUIRE_BOTH_SIDES inline SharedLayout shared_layout(const Params& params) {
  const auto aligned = [](size_t bytes) { return round_up(bytes, 128); };
  const size_t num_stages = size_t{kWarps} * static_cast<size_t>(params.num_stages);
  SharedLayout layout = {};
  layout.x = num_stages * kSegmentBytes;
  layout.residual = aligned(layout.x + static_cast<size_t>(params.max_k) * 2);
  layout.sums = aligned(layout.residual + static_cast<size_t>(params.max_own_columns) * 2);
  layout.barriers = aligned(layout.sums + static_cast<size_t>(params.max_segments) * sizeof(float));
  layout.num_bytes = layout.barriers + num_stages * sizeof(uint64_t);
  return layout;
}

// Columns and segments of the largest range: the numbers of columns differ by at most one unit.
inline int max_range_columns(const Gemm& gemm, int num_blocks) {
  return ceil_div(gemm.n / gemm.column_unit, num_blocks) * gemm.column_unit;
}
inline int max_range_segments(const Gemm& gemm, int num_blocks) {
  return max_range_columns(gemm, num_blocks) * gemm.rows_per_column * num_row_segments(gemm);
}

inline void add_gemm(Params& params, const Gemm& gemm, int num_blocks) {
  params.max_k = std::max(params.max_k, gemm.k);
  params.max_segments = std::max(params.max_segments, max_range_segments(gemm, num_blocks));
  params.gemms[params.num_gemms++] = gemm;
}

// Shared memory for a thread block of the tail, in bytes.
struct SharedMemoryLimits {
  size_t per_block;         // limit per thread block
  size_t beside_attention;  // left on the SM beside one XQA thread block
};

// Upper bound of the shared memory of XQA's decode kernels over a 16-bit cache, per thread block
// (53,888 bytes at head_dim 128); a GPU test compares it with the kernels. Kernels over an FP8
// cache take 112,256 bytes, which leaves too little for a ring of useful depth.
inline constexpr size_t kAttentionBytes = size_t{54} << 10;

// Chooses the depth of the rings. They fill while attention runs, so they leave shared memory for a
// thread block of attention on the same SM. Otherwise attention starts only after the previous tail
// has ended, and the next tail starts with empty rings. If even the shallowest rings leave too
// little, they take up to the limit per thread block.
inline void fit_rings(Params& params, const SharedMemoryLimits& limits) {
  constexpr int kMaxStages = 4;
  constexpr int kMinStages = 2;
  for (const size_t most :
       {std::min(limits.per_block, limits.beside_attention), limits.per_block}) {
    for (params.num_stages = kMaxStages; params.num_stages >= kMinStages; --params.num_stages) {
      if (shared_layout(params).num_bytes <= most) return;
    }
  }
  params.num_stages = 0;
}

}  // namespace tail

class LayerTailKernel {
 public:
  // Returns null if the device has no bulk copies (before Hopper) or no cooperative launch.
  // num_blocks: thread blocks of the cooperative launch; 0: one per SM. The device refuses the
  // launch if it cannot run all of them at once. num_ranks: that share each layer.
  static Result<std::unique_ptr<LayerTailKernel>> create(const LaunchContext& context,
                                                         int num_blocks = 0, int num_ranks = 1);

  // Whether the layer has one row of F16 or BF16, no biases, widths that are multiples of 8
  // elements and fit in shared memory, and 16-byte aligned addresses.
  bool takes(const LayerTail& layer) const;
  // Enqueues; capturable. Requires takes(). Only one stream may use it at a time, because the grid
  // barrier's counter belongs to this object. With the inboxes of several ranks, every rank
  // enqueues its part of the layer, and the kernel sums delta over the ranks: PeerSums::way(delta)
  // must be kOneStep. Without them, this rank's part is computed alone.
  void run(const LayerTail& layer, const PeerInboxes& peers = {});

 private:
  tail::Params params_of(const LayerTail& layer, const PeerInboxes& peers) const;

  LayerTailKernel(const LaunchContext& context, Buffer arrivals, int num_blocks, int num_ranks,
                  const tail::SharedMemoryLimits& limits)
      : context_(context),
        arrivals_(std::move(arrivals)),
        num_blocks_(num_blocks),
        num_ranks_(num_ranks),
        limits_(limits) {}

  LaunchContext context_;
  Buffer arrivals_;
  int num_blocks_;
  int num_ranks_;
  tail::SharedMemoryLimits limits_;
};

}  // namespace quire::cuda

#undef QUIRE_BOTH_SIDES
