// The product with packed weights for groups of up to 8 rows of x, where each group has its own
// matrix: the experts of few tokens.
//
// Work. A thread block computes `panels_per_block` adjacent panels of one group's matrix. In a
// gated product, it also computes the corresponding panels of the matrix's second half. Thread
// blocks beyond the last group exit. The warps divide K into `num_parts` ranges of blocks, whose
// sums the thread block adds up in order in shared memory. Each warp has a ring buffer of stages
// there, with one block of weights per stage. Lane 0 of the warp refills it with bulk copies.
//
// Numerics are as in packed_few_rows.cu, except that gate and up are not rounded before the
// activation.
#include <algorithm>
#include <bit>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/gemm/packed/kernels/packed_slices.cuh"
#include "cuda/ops/activation.cuh"

namespace quire::cuda {
namespace {

using namespace packed;

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
static_assert(kMaxPackedRows == kWarps);  // one warp adds up the parts of one row of x
constexpr int kMaxStages = 4;
constexpr int kMaxSharedBytes = 100 << 10;  // two thread blocks per SM
// Floats per row of sums in shared memory. The padding distributes the lanes of a store over all
// banks.
constexpr int kPartStride = static_cast<int>(kPanelRows) + 4;

struct Params {
  PackedLayout layout;
  PackedGroups groups;
  const unsigned char* panels;
  const void* x;
  const int32_t* x_rows;
  int rows_per_x;
  const void* bias;     // of the first row; null: none
  int64_t bias_stride;  // between matrices
  void* out;
  int64_t out_stride;
  Activation activation;
  bool are_ready;
  int n;  // rows of w; half of them in a gated product
  int k;
  int64_t panel_bytes;
  int num_blocks;  // per panel
  int block_bytes;
  int last_block_bytes;
  int group_shift;   // log2 of the columns of a group, or of a block if the group is larger
  int num_panels;    // panels of w, or of one half of w in a gated product
  int gated_panels;  // num_panels, or 0 if the product is not gated
  int panels_per_block;
  int num_stages;
  int stage_bytes;
};

struct SharedLayout {
  int barriers;
  int parts;  // [halves][kWarps][kMaxPackedRows][kPartStride]
  int num_bytes;
};

constexpr int kHalfFloats = kWarps * static_cast<int>(kMaxPackedRows) * kPartStride;

__host__ __device__ constexpr SharedLayout shared_layout(int stage_bytes, int num_stages,
                                                         bool is_gated) {
  SharedLayout layout = {};
  layout.barriers = kWarps * num_stages * stage_bytes;
  layout.parts = layout.barriers + kWarps * num_stages * static_cast<int>(sizeof(Mbarrier));
  layout.num_bytes =
      layout.parts + (is_gated ? 2 : 1) * kHalfFloats * static_cast<int>(sizeof(float));
  return layout;
}

// The loads bypass the L1, because the kernel may have become resident before the groups were
// written.
__device__ __forceinline__ wgmma::ExpertTile load_group(const PackedGroups& groups, int idx) {
  if (groups.tiles == nullptr) return {__ldcg(groups.experts + idx), idx, idx + 1};
  const auto* const numbers = reinterpret_cast<const int*>(groups.tiles + idx);
  return {__ldcg(numbers), __ldcg(numbers + 1), __ldcg(numbers + 2)};
}

__device__ __forceinline__ bool has_group(const PackedGroups& groups, int idx) {
  return groups.tiles == nullptr || idx < __ldcg(groups.num_tiles);
}

// The index in x of row `row` of the groups.
__device__ __forceinline__ int64_t x_row(const int32_t* x_rows, int rows_per_x, int row) {
  return x_rows == nullptr ? row / rows_per_x : __ldcg(x_rows + row);
}

// The lane's values of x in a slice. `left`: the number of columns from the slice's first to the
// last column of x. `x`: the lane's first value in the slice, or null.
template <typename T>
__device__ __forceinline__ SliceOfX load_x(const T* x, int left, int lane) {
  SliceOfX slice;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    slice.steps[step] = make_uint2(0, 0);
    const bool exists = x != nullptr && step * 16 + lane % 4 * 4 < left;
    if (exists) slice.steps[step] = *reinterpret_cast<const uint2*>(x + step * 16);
  }
  return slice;
}

// Writes the warp's sums to its part, [kMaxPackedRows][kPartStride].
__device__ __forceinline__ void write_part(const float (&sums)[kTiles][4], int lane, float* part) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = lane % 4 * 2 + i % 2;
      const int row = tile * kPackedTileRows + i / 2 * 8 + lane / 4;
      part[token * kPartStride + row] = sums[tile][i];
    }
  }
}

// Adds up the parts and stores the thread block's panels of one row of x. Warp `token` calls this.
// bias: of the matrix, or null.
template <typename T>
__device__ __forceinline__ void store_row(const Params& p, const float* parts, int num_parts,
                                          int num_halves, int first_panel, int token, int lane,
                                          const T* bias, T* out) {
  for (int i = 0; i < p.panels_per_block; ++i) {
    const int row = (first_panel + i) * static_cast<int>(kPanelRows) + lane;
    if (row >= p.n) return;
    float of_half[2] = {};
    for (int half = 0; half < num_halves; ++half) {
      for (int of_part = 0; of_part < num_parts; ++of_part) {
        const int of_warp = of_part * p.panels_per_block + i;
        of_half[half] +=
            parts[half * kHalfFloats +
                  (of_warp * static_cast<int>(kMaxPackedRows) + token) * kPartStride + lane];
      }
      if (bias != nullptr) of_half[half] += to_float(bias[half * p.n + row]);
    }
    out[row] = from_float<T>(
        num_halves == 1 ? of_half[0] : gated_product<T>(p.activation, of_half[0], of_half[1]));
  }
}

// Starts the copy of a block of a panel into a stage.
__device__ __forceinline__ void copy_block(const Params& p, const unsigned char* panel, int block,
                                           unsigned char* stage, Mbarrier& arrived) {
  const unsigned char* const from = panel + int64_t{block} * p.block_bytes;
  const auto num_bytes =
      static_cast<uint32_t>(block + 1 == p.num_blocks ? p.last_block_bytes : p.block_bytes);
  arrived.arrive_expecting(num_bytes);
  copy_bulk_evict_first(stage, from, num_bytes, arrived);
}

// Grid: (thread blocks of panels, groups). The barriers and the data that each protects:
//
//   lane 0 of a warp                         the warp
//   bulk copy -> stage i  --- arrived[i] --> wait for arrived[i]; read stage i
//   next block -> stage i <-- __syncwarp --- all lanes have read stage i
//
//   __syncthreads            the parts of all warps' sums, which store_row() adds up
template <typename T, Values kValues, int kGroupSteps, bool kHasMinimums>
__global__ void __launch_bounds__(kThreads, 2)
    packed_experts_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char memory[];
  constexpr int kBlockColumns = packed_block_columns(bits_of(kValues));
  constexpr int kSlices = kBlockColumns / kSliceColumns;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // The trigger follows the wait, so the groups are complete when the next kernel starts early.
  if (!p.are_ready) wait_for_previous_kernel();
  const int num_ranges = ceil_div(p.num_panels, p.panels_per_block);
  const int group_idx = static_cast<int>(blockIdx.x) / num_ranges;
  const bool is_used = has_group(p.groups, group_idx);
  trigger_dependent_launch();
  if (!is_used) return;
  const wgmma::ExpertTile group = load_group(p.groups, group_idx);
  const int num_rows = group.end_row - group.first_row;

  const int num_parts = kWarps / p.panels_per_block;
  const int part = warp / p.panels_per_block;
  const int first_panel = static_cast<int>(blockIdx.x) % num_ranges * p.panels_per_block;
  const int panel = first_panel + warp % p.panels_per_block;
  const int first_block = part * p.num_blocks / num_parts;
  const int end_block = panel < p.num_panels ? (part + 1) * p.num_blocks / num_parts : first_block;
  const int num_halves = p.gated_panels > 0 ? 2 : 1;

  const SharedLayout layout = shared_layout(p.stage_bytes, p.num_stages, num_halves == 2);
  unsigned char* const ring = memory + warp * p.num_stages * p.stage_bytes;
  Mbarrier* const arrived =
      reinterpret_cast<Mbarrier*>(memory + layout.barriers) + warp * p.num_stages;
  float* const parts = reinterpret_cast<float*>(memory + layout.parts);
  const unsigned char* const panel_at =
      p.panels + group.expert * p.groups.matrix_bytes + panel * p.panel_bytes;
  int loaded_half = 0;
  int loaded_block = first_block;
  int loaded_stage = 0;
  // Starts the copy of the next block, if any, into the next stage.
  const auto load_next = [&] {
    if (loaded_half >= num_halves || first_block >= end_block) return;
    copy_block(p, panel_at + loaded_half * p.gated_panels * p.panel_bytes, loaded_block,
               ring + loaded_stage * p.stage_bytes, arrived[loaded_stage]);
    if (++loaded_stage == p.num_stages) loaded_stage = 0;
    if (++loaded_block < end_block) return;
    loaded_block = first_block;
    ++loaded_half;
  };
  if (lane == 0) {
#pragma unroll 1
    for (int i = 0; i < p.num_stages; ++i) arrived[i].init();
    publish_barriers();
#pragma unroll 1
    for (int i = 0; i < p.num_stages; ++i) load_next();
  }
  __syncwarp();
  wait_for_previous_kernel();

  const T* x = nullptr;  // the lane's first value of its row
  if (lane / 4 < num_rows) {
    x = static_cast<const T*>(p.x) +
        x_row(p.x_rows, p.rows_per_x, group.first_row + lane / 4) * p.k + lane % 4 * 4;
  }
  const auto load_slice = [&](int column) {
    return load_x(x == nullptr ? x : x + column, p.k - column, lane);
  };
  const int first_column = first_block * kBlockColumns;
  SliceOfX slice_of_x = load_slice(first_column);
  int stage = 0;
  uint32_t parity = 0;
#pragma unroll 1
  for (int half = 0; half < num_halves; ++half) {
    float sums[kTiles][4] = {};
#pragma unroll 1
    for (int block_idx = first_block; block_idx < end_block; ++block_idx) {
      const unsigned char* const block = ring + stage * p.stage_bytes;
      const int column = block_idx * kBlockColumns;
      const int num_slices = min(kSlices, ceil_div(p.k - column, kSliceColumns));
      arrived[stage].wait(parity);
#pragma unroll 1
      for (int slice = 0; slice < num_slices; ++slice) {
        // x of the next slice is loaded while this slice is multiplied. After the last slice of a
        // half, the next slice is the first one of the second half.
        const bool is_last = slice + 1 == num_slices && block_idx + 1 == end_block;
        const SliceOfX next =
            load_slice(is_last ? first_column : column + (slice + 1) * kSliceColumns);
        multiply_slice<T, kValues, kGroupSteps, kHasMinimums>(p.layout, p.group_shift, block, slice,
                                                              slice_of_x, lane, sums);
        slice_of_x = next;
      }
      __syncwarp();
      if (lane == 0) load_next();
      if (++stage == p.num_stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    write_part(sums, lane, parts + half * kHalfFloats + warp * kMaxPackedRows * kPartStride);
  }
  __syncthreads();
  if (warp >= num_rows) return;
  T* const out = static_cast<T*>(p.out) + int64_t{group.first_row + warp} * p.out_stride;
  const T* bias = static_cast<const T*>(p.bias);
  if (bias != nullptr) bias += group.expert * p.bias_stride;
  store_row(p, parts, num_parts, num_halves, first_panel, warp, lane, bias, out);
}

// Grid: one thread block per group.
template <typename T>
__global__ void permute_groups_kernel(PackedGroups groups, const T* x, const int32_t* x_rows,
                                      int rows_per_x, const int32_t* order, T* out, int width) {
  wait_for_previous_kernel();
  const int group_idx = static_cast<int>(blockIdx.x);
  const bool is_used = has_group(groups, group_idx);
  trigger_dependent_launch();
  if (!is_used) return;
  const wgmma::ExpertTile group = load_group(groups, group_idx);
  const int32_t* const of_matrix = order + int64_t{group.expert} * width;
  for (int row = group.first_row; row < group.end_row; ++row) {
    const T* const from = x + x_row(x_rows, rows_per_x, row) * width;
    for (int k = static_cast<int>(threadIdx.x); k < width; k += static_cast<int>(blockDim.x)) {
      out[int64_t{row} * width + k] = from[of_matrix[k]];
    }
  }
}

// K is divided into as many parts as a panel has blocks, rounded up to a power of two, but at most
// one part per warp.
int panels_per_block(const PackedRows& w) {
  int num_parts = 1;
  while (num_parts < kWarps && num_parts < w.num_blocks()) num_parts *= 2;
  return kWarps / num_parts;
}

}  // namespace

void run_packed_experts(const LaunchContext& context, const PackedExpertsCall& call) {
  const PackedRows& w = *call.w;
  if (call.groups.most_tiles == 0) return;
  QUIRE_CHECK(!call.is_gated || packed_gemm_gates(w),
              "[ops] the kernel does not support this product of packed experts");
  const int halves = call.is_gated ? 2 : 1;
  Params p = {};
  p.layout = w.layout;
  p.groups = call.groups;
  p.panels = static_cast<const unsigned char*>(w.panels);
  p.x = call.x.data;
  p.x_rows = call.x_rows;
  p.rows_per_x = call.rows_per_x;
  if (call.bias.data != nullptr) {
    p.bias = call.bias.as<const std::byte>() + w.first_row * dtype_bytes(call.x.dtype);
    p.bias_stride = call.bias.shape[1];
  }
  p.out = call.out.as<std::byte>() + w.first_row * static_cast<int64_t>(dtype_bytes(call.x.dtype));
  p.out_stride = call.out.shape[1];
  p.activation = call.activation;
  p.are_ready = call.are_ready;
  p.n = static_cast<int>(w.num_rows) / halves;
  p.k = static_cast<int>(w.num_columns);
  p.panel_bytes = w.panel_bytes();
  p.num_blocks = w.num_blocks();
  p.block_bytes = w.layout.block_bytes();
  p.last_block_bytes = static_cast<int>(w.last_block_bytes());
  p.group_shift = std::countr_zero(static_cast<unsigned>(w.layout.format.group_k));
  p.num_panels = w.num_panels() / halves;
  p.gated_panels = call.is_gated ? p.num_panels : 0;
  p.panels_per_block = panels_per_block(w);
  p.stage_bytes = static_cast<int>(round_up(p.block_bytes, 128));
  const int most_loads = ceil_div(p.num_blocks, kWarps / p.panels_per_block) * halves;
  p.num_stages = std::min(kMaxStages, most_loads);
  const auto shared_bytes = [&] {
    return shared_layout(p.stage_bytes, p.num_stages, call.is_gated).num_bytes;
  };
  while (p.num_stages > 1 && shared_bytes() > kMaxSharedBytes) --p.num_stages;
  const int64_t num_ranges = ceil_div(p.num_panels, p.panels_per_block);
  LaunchShape shape = context.shape(num_ranges * call.groups.most_tiles, kThreads);
  shape.shared_bytes = static_cast<size_t>(shared_bytes());
  with_half_type(call.x.dtype, [&]<typename T>(std::type_identity<T>) {
    with_groups(w.layout, [&](auto values, auto group_steps, auto has_minimums) {
      QUIRE_LAUNCH(*context.stream,
                   (packed_experts_kernel<T, values(), group_steps(), has_minimums()>), shape, p);
    });
  });
}

void run_permute_groups(const LaunchContext& context, const PackedExpertsCall& call,
                        const int32_t* order, const TensorView& out) {
  if (call.groups.most_tiles == 0) return;
  with_half_type(out.dtype, [&]<typename T>(std::type_identity<T>) {
    QUIRE_LAUNCH(*context.stream, permute_groups_kernel<T>,
                 context.shape(call.groups.most_tiles, kThreads), call.groups,
                 static_cast<const T*>(call.x.data), call.x_rows, call.rows_per_x, order,
                 static_cast<T*>(out.data), static_cast<int>(out.shape[1]));
  });
}

}  // namespace quire::cuda
