// All products between the attention of two layers in one kernel, for a single token row. There is
// so little arithmetic per weight that memory bandwidth determines the time, if memory is never
// idle.
//
// This header has the host's interface and, in namespace tail, the plan that the launch and the
// kernels (layer_tail_kernel.cuh) share: the products, each thread block's columns of them, and the
// layout of shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/numbers.h"
#include "cuda/base/memory.h"
#include "cuda/gemm/packed/packed_kernels.h"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/peer_sums.h"
#include "ops/layer_tail_ops.h"
#include "tensor/tensor.h"

#ifdef __CUDACC__
#define QUIRE_BOTH_SIDES __host__ __device__
#else
#define QUIRE_BOTH_SIDES
#endif

namespace quire::cuda {
namespace tail {

inline constexpr int kWarps = 8;
inline constexpr int kThreads = kWarps * 32;         // threads that compute
inline constexpr int kBlockThreads = kThreads + 32;  // plus the warp that loads weights
inline constexpr int kVec = 8;                       // elements of a 16-byte access
// Elements of K of one weight row that a warp loads per stage of its ring. Halving this (with twice
// the stages) is 20 % slower on an H200, because each SM then issues too many bulk copies.
inline constexpr int kSegment = 2048;
inline constexpr int kSegmentBytes = kSegment * 2;
inline constexpr int kMaxGemms = 4;

// The products in the order of their phases. After the last layer there is no kQkv.
enum GemmIdx { kO, kGateUp, kDown, kQkv };

// One product: out[n] = w[n, k] * x[k].
struct Gemm {
  const void* w = nullptr;  // rows, or panels of packed weights
  void* out = nullptr;
  int n = 0;  // columns of out; for gate and up, w has 2 n rows
  int k = 0;
  int rows_per_column = 1;  // rows of w per column of out
  int column_unit = 1;      // a divisor of n: thread blocks share the columns in units of this many
                            // columns
  int64_t panel_bytes = 0;  // of packed weights
};

// A thread block's contiguous range of a product's columns, and the segments of w that they need.
struct ColumnRange {
  int first_column;
  int num_columns;
  int row_segments;   // segments per row of w
  int num_segments;   // segments of all rows
  int first_segment;  // where the range begins within its first row
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

// The ends of the thread blocks' ranges if segments are divided evenly. Because of rounding up, the
// columns that a thread block owns do not depend on k, so kO and kDown have the same ranges.
struct RangeEnds {
  int end;        // of thread block i: ceil((i + 1) * segments / num_blocks)
  int remainder;  // end * num_blocks - (i + 1) * segments, below num_blocks
  int step;       // segments / num_blocks
  int step_rest;  // segments % num_blocks
  int num_blocks;

  // The end of the previous thread block's range.
  static QUIRE_BOTH_SIDES RangeEnds before(int block, int num_blocks, int num_segments) {
    RangeEnds ends = {};
    ends.end = ceil_div(num_segments * block, num_blocks);
    ends.remainder = ends.end * num_blocks - num_segments * block;
    ends.step = num_segments / num_blocks;
    ends.step_rest = num_segments % num_blocks;
    ends.num_blocks = num_blocks;
    return ends;
  }
  // Moves to the next thread block without a division.
  QUIRE_BOTH_SIDES void advance() {
    end += step;
    remainder -= step_rest;
    if (remainder >= 0) return;
    remainder += num_blocks;
    ++end;
  }
};

// With packed weights, a segment is a block of a panel, and the segments are divided evenly among
// the thread blocks. They are in the order of the columns: for every 32 columns, the panel of gate,
// then the panel of up. A thread block owns the columns whose first segment is in its range. If a
// column begins in an earlier range, the thread block sends its sums of the column to the owner.
// Unlike in ColumnRange, a range may have segments of other ranges' columns.
struct PanelRange : ColumnRange {
  int first_panel;      // in this order
  int num_panels;       // with segments in this range
  int num_sent_panels;  // the first of them, whose columns another thread block owns
  RangeEnds ends;       // of this range
};

QUIRE_BOTH_SIDES inline int num_panel_segments(const Gemm& gemm) {
  return gemm.n / static_cast<int>(kPanelRows) * gemm.rows_per_column *
         ceil_div(gemm.k, packed_block_columns(4));
}

QUIRE_BOTH_SIDES inline PanelRange panel_range(const Gemm& gemm, int block, int num_blocks) {
  constexpr int kColumns = static_cast<int>(kPanelRows);
  PanelRange range = {};
  range.row_segments = ceil_div(gemm.k, packed_block_columns(4));
  const int unit_segments = range.row_segments * gemm.rows_per_column;  // per 32 columns
  range.ends = RangeEnds::before(block, num_blocks, num_panel_segments(gemm));
  const int first = range.ends.end;
  range.ends.advance();
  const int end = range.ends.end;
  const int first_unit = ceil_div(first, unit_segments);
  range.first_column = first_unit * kColumns;
  range.num_columns = (ceil_div(end, unit_segments) - first_unit) * kColumns;
  range.num_segments = end - first;
  range.first_segment = first % range.row_segments;
  range.first_panel = first / range.row_segments;
  if (range.num_segments == 0) return range;
  range.num_panels = ceil_div(end, range.row_segments) - range.first_panel;
  range.num_sent_panels =
      std::min(first_unit * gemm.rows_per_column - range.first_panel, range.num_panels);
  return range;
}

// The kernel's parameters.
struct Params {
  Gemm gemms[kMaxGemms];
  int num_gemms = 0;
  int num_stages = 0;  // of a warp's ring; 0: does not fit
  int stage_bytes = kSegmentBytes;
  size_t x_bytes = 0;  // shared memory for the widest x
  int sums_bytes = 0;  // shared memory; the maximum over all thread blocks and phases
  int hidden = 0;
  int max_own_columns = 0;  // columns of the residual in the largest range
  const void* attention = nullptr;
  void* residual = nullptr;
  const float* norms[2] = {};  // after kO and after kDown
  float eps = 0;
  uint64_t* arrivals = nullptr;  // grid barrier; a multiple of gridDim.x between launches
  PeerInboxes peers;             // num_ranks is 0 on a single rank
  // Only with packed weights:
  PackedLayout layout;
  int group_shift = 0;           // log2 of the columns of a group
  std::byte* inboxes = nullptr;  // memory to which thread blocks send sums
  std::byte* rows[2] = {};       // rows of digits (DigitRow); phases alternate between the two
};

// With packed weights, each thread block sends its sums to its own inbox,
// F32 [products][thread blocks][gate or up][warps][columns of a panel].
inline constexpr int64_t kInboxBytes = int64_t{2} * kWarps * kPanelRows * 4;

// Offsets in shared memory. The rings of the warps come first.
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
  layout.x = num_stages * static_cast<size_t>(params.stage_bytes);
  layout.residual = aligned(layout.x + params.x_bytes);
  layout.sums = aligned(layout.residual + static_cast<size_t>(params.max_own_columns) * 2);
  layout.barriers = aligned(layout.sums + static_cast<size_t>(params.sums_bytes));
  layout.num_bytes = layout.barriers + 2 * num_stages * sizeof(uint64_t);
  return layout;
}

// The number of columns and of segments in the largest range. The numbers of columns differ by at
// most one unit.
inline int max_range_columns(const Gemm& gemm, int num_blocks) {
  return ceil_div(gemm.n / gemm.column_unit, num_blocks) * gemm.column_unit;
}
inline int max_range_segments(const Gemm& gemm, int num_blocks) {
  return max_range_columns(gemm, num_blocks) * gemm.rows_per_column * num_row_segments(gemm);
}

inline void add_gemm(Params& params, const Gemm& gemm, int num_blocks) {
  params.x_bytes = std::max(params.x_bytes, static_cast<size_t>(gemm.k) * 2);
  params.sums_bytes = std::max(
      params.sums_bytes, max_range_segments(gemm, num_blocks) * static_cast<int>(sizeof(float)));
  params.gemms[params.num_gemms++] = gemm;
}

// The number of partial sums of a range: one per own panel, warp and column. In shared memory, the
// sums of the columns follow the partial sums.
QUIRE_BOTH_SIDES inline int num_panel_sums(const PanelRange& range) {
  return (range.num_panels - range.num_sent_panels) * kWarps * static_cast<int>(kPanelRows);
}

// With packed weights, x is represented as integers times one scale per step of 32 columns. An
// integer is the sum of digit[i] * 256^i, with four signed digits of 8 bits. The digits come first;
// these are the offsets of the rest:
struct DigitRow {
  int scales;   // F32 [steps]; NaN if a column of the step is not finite
  int squares;  // F32 [steps]: of a residual, the sum of its columns' squares
  int sums;     // I32 [2][steps], for weights with zero points: the sums over the step's columns of
                // digit[0] + 256 * digit[1], and of digit[2] + 256 * digit[3]
  int num_bytes;
};
inline constexpr int kStepColumns = 32;
inline constexpr int kDigits = 4;
QUIRE_BOTH_SIDES inline DigitRow digit_row(int num_columns, bool has_sums) {
  const int step_words = round_up(num_columns / kStepColumns, 4) * 4;
  DigitRow row = {};
  row.scales = num_columns * kDigits;
  row.squares = row.scales + step_words;
  row.sums = row.squares + step_words;
  row.num_bytes = row.sums + (has_sums ? 2 * step_words : 0);
  return row;
}

// The unit of columns is a panel.
inline void add_packed_gemm(Params& params, const Gemm& gemm, int num_blocks) {
  const int num_columns = max_range_columns(gemm, num_blocks) * gemm.rows_per_column;
  params.x_bytes = std::max(params.x_bytes, static_cast<size_t>(digit_row(gemm.k, true).num_bytes));
  params.sums_bytes =
      std::max(params.sums_bytes, num_columns * (kWarps + 1) * static_cast<int>(sizeof(float)));
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

// An upper bound of the kernels' static shared memory, in bytes (layer_tail_kernel.cuh checks it).
inline constexpr size_t kStaticBytes = 512;

// Deeper rings are not faster on an H200.
inline constexpr int kMostStages = 4;

// Chooses the depth of the rings. They fill while attention runs, so they leave shared memory for a
// thread block of attention on the same SM. Otherwise attention would start only after the previous
// tail has ended, and the next tail would start with empty rings. If even the shallowest rings
// leave too little memory, they use up to the limit per thread block.
inline void fit_rings(Params& params, const SharedMemoryLimits& limits,
                      int most_stages = kMostStages) {
  constexpr int kMinStages = 2;
  for (const size_t most :
       {std::min(limits.per_block, limits.beside_attention), limits.per_block}) {
    for (params.num_stages = most_stages; params.num_stages >= kMinStages; --params.num_stages) {
      if (shared_layout(params).num_bytes <= most) return;
    }
  }
  params.num_stages = 0;
}

}  // namespace tail

// Enqueues the kernel for packed weights.
void run_packed_tail(const LaunchContext& context, int num_blocks, DType dtype,
                     const tail::Params& p);
// Loads the kernels for this number of ranks.
Status load_packed_tails(int num_ranks);

class LayerTailKernel {
 public:
  // Returns null if the device has no bulk copies (before Hopper) or no cooperative launch.
  // num_blocks: thread blocks of the cooperative launch; 0: one per SM. The device refuses the
  // launch if it cannot run all of them at the same time. num_ranks: the ranks that share each
  // layer. most_stages: the maximum depth of a warp's ring, for measurements.
  static Result<std::unique_ptr<LayerTailKernel>> create(const LaunchContext& context,
                                                         int num_blocks = 0, int num_ranks = 1,
                                                         int most_stages = tail::kMostStages);

  // Whether the layer has one row of F16 or BF16, no biases, widths that fit in shared memory, and
  // 16-byte aligned addresses. F16 or BF16 weights must have widths that are multiples of 8. Packed
  // weights must have one format of 4 bits without minimums and without an order of columns, in
  // groups of at least 64 columns; inputs must be multiples of 64, outputs (gate and up each)
  // multiples of 32. FP8 weights are not supported.
  bool takes(const LayerTail& layer) const;
  // Enqueues; capturable. Requires takes(). Only one stream may use it at a time, because the grid
  // barrier's counter belongs to this object. With the inboxes of several ranks, every rank
  // enqueues its part of the layer, and the kernel sums delta over the ranks: PeerSums::method(delta)
  // must be kOneStep. Without them, only this rank's part is computed.
  void run(const LayerTail& layer, const PeerInboxes& peers = {});

 private:
  tail::Params params_of(const LayerTail& layer, const PeerInboxes& peers) const;

  LayerTailKernel(const LaunchContext& context, Buffer arrivals, Buffer inboxes, Buffer rows,
                  int num_blocks, int num_ranks, int most_stages,
                  const tail::SharedMemoryLimits& limits)
      : context_(context),
        arrivals_(std::move(arrivals)),
        inboxes_(std::move(inboxes)),
        rows_(std::move(rows)),
        num_blocks_(num_blocks),
        num_ranks_(num_ranks),
        most_stages_(most_stages),
        limits_(limits) {}

  LaunchContext context_;
  Buffer arrivals_;
  Buffer inboxes_;  // of thread blocks
  Buffer rows_;     // two rows of digits, each as large as all of shared memory
  int num_blocks_;
  int num_ranks_;
  int most_stages_;
  tail::SharedMemoryLimits limits_;
};

}  // namespace quire::cuda

#undef QUIRE_BOTH_SIDES
