// The product with packed weights for up to 8 rows of x. With few rows of x there is little
// arithmetic per weight, so memory bandwidth determines the time, if copies are always in flight.
//
// Work. An item is `panels_per_item` adjacent panels of w. In a gated product, it also has the
// corresponding panels of the second half of w, in a second round. Thread blocks, or clusters of
// them, process the items in turn. K is divided into `num_parts` contiguous ranges of blocks; each
// warp of the cluster has one panel of the item and one range. A panel's parts are added in order,
// so its sums do not depend on the number of panels per item. With more rows of x, items have more
// panels, because each thread block then reads less of x. num_parts() depends only on w and the
// number of SMs, so a row of x has the same bits in all steps of up to 8 rows.
//
// Each warp has a ring buffer of stages in shared memory, with one block of weights per stage. Lane
// 0 of the warp (the loader) refills it with bulk copies. The loader runs ahead across panels, and
// starts before the wait for the previous kernel, because no kernel writes weights.
//
// Numerics. Integers and E2M1 numbers become numbers of x's type, which is exact. Tensor cores add
// up the products of a group, or of a slice if the group is larger, in F32. In F32, this sum is
// multiplied by the group's scale and added to the row's sum. The group's negative minimum times
// the sum of the group's x is added too; an instruction with ones instead of w computes the sum of
// x. So weights are not rounded.
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
static_assert(kMaxPackedRows == 8);  // the rows of x per instruction
// Floats per token of sums in shared memory. The padding distributes the lanes of a store over all
// banks.
constexpr int kPartStride = static_cast<int>(kPanelRows) + 4;

struct Params {
  PackedLayout layout;
  const unsigned char* panels;
  const void* x;
  const void* bias;  // of the first row; null: none
  void* out;         // of the first row
  bool out_is_f32;
  int m;
  int n;  // rows of w; half of them in a gated product
  int k;
  int64_t out_stride;
  int64_t panel_bytes;
  int num_blocks;  // per panel
  int block_bytes;
  int last_block_bytes;
  int group_shift;  // log2 of the columns of a group, or of a block if the group is larger
  int num_items;
  int panels_per_item;  // 1, 2 or 4
  int gated_panels;     // panels of the first half of w, or 0 if the product is not gated
  int num_parts;
  int cluster;
  int num_stages;
  int stage_bytes;
};

struct SharedLayout {
  int barriers;
  int parts;
  int num_bytes;
};

__host__ __device__ constexpr SharedLayout shared_layout(int stage_bytes, int num_stages, int m) {
  SharedLayout layout = {};
  layout.barriers = kWarps * num_stages * stage_bytes;
  layout.parts = layout.barriers + kWarps * num_stages * static_cast<int>(sizeof(Mbarrier));
  layout.num_bytes = layout.parts + 2 * kWarps * m * kPartStride * static_cast<int>(sizeof(float));
  return layout;
}

// The panel and the range of K that a warp multiplies.
struct Place {
  int panel;        // within an item
  int first_block;  // of K
  int end_block;
  int first_item;
  int item_step;

  __device__ __forceinline__ explicit Place(const Params& p) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int rank = static_cast<int>(blockIdx.x) % p.cluster;
    const int part = rank * (kWarps / p.panels_per_item) + warp / p.panels_per_item;
    panel = warp % p.panels_per_item;
    first_block = part * p.num_blocks / p.num_parts;
    end_block = (part + 1) * p.num_blocks / p.num_parts;
    first_item = static_cast<int>(blockIdx.x) / p.cluster;
    item_step = static_cast<int>(gridDim.x) / p.cluster;
  }
};

// Issues the bulk copies of a warp's blocks; runs on one lane.
class WeightLoader {
 public:
  __device__ __forceinline__ WeightLoader(const Params& p, const Place& place, unsigned char* ring,
                                          Mbarrier* arrived)
      : p_(p),
        place_(place),
        ring_(ring),
        arrived_(arrived),
        item_(place.first_block < place.end_block ? place.first_item : p.num_items),
        block_(place.first_block) {}

  // Starts the copy of the next block, if any, into the next stage. All lanes must have read the
  // stage's content.
  __device__ __forceinline__ void load_next() {
    if (item_ >= p_.num_items) return;
    const int panel = item_ * p_.panels_per_item + place_.panel + half_ * p_.gated_panels;
    const unsigned char* from =
        p_.panels + panel * p_.panel_bytes + int64_t{block_} * p_.block_bytes;
    const auto num_bytes =
        static_cast<uint32_t>(block_ + 1 == p_.num_blocks ? p_.last_block_bytes : p_.block_bytes);
    arrived_[stage_].arrive_expecting(num_bytes);
    copy_bulk_evict_first(ring_ + stage_ * p_.stage_bytes, from, num_bytes, arrived_[stage_]);
    if (++stage_ == p_.num_stages) stage_ = 0;
    if (++block_ < place_.end_block) return;
    block_ = place_.first_block;
    half_ ^= 1;
    if (half_ == 1 && p_.gated_panels > 0) return;
    half_ = 0;
    item_ += place_.item_step;
  }

 private:
  const Params& p_;
  const Place& place_;
  unsigned char* ring_;
  Mbarrier* arrived_;
  int item_;
  int half_ = 0;  // half of w in a gated product
  int block_;
  int stage_ = 0;
};

// Zeros for the columns of the largest block, for lanes without a token.
__device__ const uint4 zero_columns[packed_block_columns(4) / 8] = {};

// Loads a lane's values of x.
template <typename T>
class XLoader {
 public:
  __device__ __forceinline__ XLoader(const Params& p, int lane) : k_(p.k) {
    const T* const x = static_cast<const T*>(p.x);
    const int token = lane / 4;
    const bool exists = token < p.m;
    row_ = (exists ? x + int64_t{token} * p.k : reinterpret_cast<const T*>(zero_columns)) +
           first_of_lane();
    step_ = exists ? 1 : 0;
  }
  // Moves to the block of columns that begins at `column`.
  __device__ __forceinline__ void move_to(int column) {
    column_ = column;
    at_ = reinterpret_cast<const uint2*>(row_ + column * step_);
  }
  // Loads a slice of the block. Values past the end are zeros.
  __device__ __forceinline__ SliceOfX load(int slice) const {
    const int left = k_ - column_ - slice * kSliceColumns;
    if (left >= kSliceColumns) return load_steps(slice, kSteps);
    return load_steps(slice, ceil_div(max(left - first_of_lane(), 0), 16));
  }

 private:
  // The lane's first column of a step.
  static __device__ __forceinline__ int first_of_lane() {
    return static_cast<int>(threadIdx.x) % 4 * 4;
  }
  // Loads the lane's first `count` steps; the other steps are zeros.
  __device__ __forceinline__ SliceOfX load_steps(int slice, int count) const {
    SliceOfX x;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      x.steps[step] = make_uint2(0, 0);
      if (step < count) x.steps[step] = at_[slice * (kSliceColumns / 4) + step * 4];
    }
    return x;
  }

  int k_;
  int column_ = 0;
  const T* row_;
  int step_;  // 0: the lane has no token
  const uint2* at_ = nullptr;
};

template <typename T>
__device__ __forceinline__ void store_out(const Params& p, int64_t at, float value) {
  if (p.out_is_f32) {
    static_cast<float*>(p.out)[at] = value;
  } else {
    static_cast<T*>(p.out)[at] = from_float<T>(value);
  }
}

// Writes the warp's sums to its part, [m][kPartStride].
__device__ __forceinline__ void write_part(const Params& p, const float (&sums)[kTiles][4],
                                           int lane, float* part) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = lane % 4 * 2 + i % 2;
      const int row = tile * kPackedTileRows + i / 2 * 8 + lane / 4;
      if (token < p.m) part[token * kPartStride + row] = sums[tile][i];
    }
  }
}

// The sum of the parts of one output, added in order. panel: index within the item.
__device__ __forceinline__ float add_parts(const Params& p, const float* parts, int panel,
                                           int token, int lane) {
  const int warps_per_panel = kWarps / p.panels_per_item;
  float sum = 0;
  for (int part = 0; part < p.num_parts; ++part) {
    const int of_warp = part % warps_per_panel * p.panels_per_item + panel;
    const float* const from = &parts[(of_warp * p.m + token) * kPartStride + lane];
    sum += p.cluster == 1
               ? *from
               : load_in_cluster(address_in(shared_address(from),
                                            static_cast<uint32_t>(part / warps_per_panel)));
  }
  return sum;
}

// Stores a thread's output of a panel. In a gated product, the first half's sum is kept in `gate`,
// and the second half combines its sum with it.
template <typename T>
__device__ __forceinline__ void store_sum(const Params& p, const float* parts, int item, int half,
                                          int num_halves, int panel, int token, int lane,
                                          float& gate) {
  const int row = (item * p.panels_per_item + panel) * static_cast<int>(kPanelRows) + lane;
  if (token >= p.m || panel >= p.panels_per_item || row >= p.n) return;
  float sum = add_parts(p, parts, panel, token, lane);
  if (p.bias != nullptr) sum += to_float(static_cast<const T*>(p.bias)[row + half * p.n]);
  if (num_halves == 1) {
    store_out<T>(p, token * p.out_stride + row, sum);
  } else if (half == 0) {
    gate = to_float(from_float<T>(sum));
  } else {
    const float up = to_float(from_float<T>(sum));
    store_out<T>(p, token * p.out_stride + row, silu<T>(gate) * up);
  }
}

// The barriers and the data that each protects:
//
//   WeightLoader (lane 0 of a warp)          the warp
//   bulk copy -> stage i  --- arrived[i] --> wait for arrived[i]; read stage i
//   next block -> stage i <-- __syncwarp --- all lanes have read stage i
//
//   sync()                   the parts of a panel's sums, for the thread blocks that add them up.
//                            The parts are double-buffered, so this barrier also ends the reads of
//                            the half that is written next.
//   sync_cluster_memory      at the end: the other thread blocks have read this one's parts
template <typename T, Values kValues, int kGroupSteps, bool kHasMinimums>
__global__ void __launch_bounds__(kThreads, 2)
    packed_gemm_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(128) unsigned char memory[];
  constexpr int kBlockColumns = packed_block_columns(bits_of(kValues));
  constexpr int kSlices = kBlockColumns / kSliceColumns;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const SharedLayout layout = shared_layout(p.stage_bytes, p.num_stages, p.m);
  unsigned char* const ring = memory + warp * p.num_stages * p.stage_bytes;
  Mbarrier* const arrived =
      reinterpret_cast<Mbarrier*>(memory + layout.barriers) + warp * p.num_stages;
  // The parts of one panel are added up while the next parts are written to the other half of the
  // memory.
  float* parts = reinterpret_cast<float*>(memory + layout.parts);
  ptrdiff_t to_other_parts = kWarps * p.m * kPartStride;
  const Place place(p);
  WeightLoader loader(p, place, ring, arrived);
  if (lane == 0) {
#pragma unroll 1
    for (int i = 0; i < p.num_stages; ++i) arrived[i].init();
    publish_barriers();
#pragma unroll 1
    for (int i = 0; i < p.num_stages; ++i) loader.load_next();
  }
  __syncwarp();
  trigger_dependent_launch();
  wait_for_previous_kernel();

  const auto sync = [&] {
    if (p.cluster > 1) {
      sync_cluster_memory();
    } else {
      __syncthreads();
    }
  };
  XLoader<T> x_loader(p, lane);
  x_loader.move_to(place.first_block * kBlockColumns);
  SliceOfX x = x_loader.load(0);
  int stage = 0;
  uint32_t parity = 0;
  const int rank = static_cast<int>(blockIdx.x) % p.cluster;
  const int num_halves = p.gated_panels > 0 ? 2 : 1;
  for (int item = place.first_item; item < p.num_items; item += place.item_step) {
    float gate = 0;
    for (int half = 0; half < num_halves; ++half) {
      float sums[kTiles][4] = {};
      for (int block_idx = place.first_block; block_idx < place.end_block; ++block_idx) {
        const unsigned char* const block = ring + stage * p.stage_bytes;
        const int num_slices = ceil_div(p.k - block_idx * kBlockColumns, kSliceColumns);
        // After the last block, the next block is the first block of the next panel.
        const int next_block = block_idx + 1 < place.end_block ? block_idx + 1 : place.first_block;
        arrived[stage].wait(parity);
        // Starts loading x of the next slice, then multiplies a slice.
        const auto multiply = [&](int slice, bool is_last) {
          if (is_last) x_loader.move_to(next_block * kBlockColumns);
          const SliceOfX next = x_loader.load(is_last ? 0 : slice + 1);
          multiply_slice<T, kValues, kGroupSteps, kHasMinimums>(p.layout, p.group_shift, block,
                                                                slice, x, lane, sums);
          x = next;
        };
        if (num_slices >= kSlices) {
#pragma unroll
          for (int slice = 0; slice < kSlices; ++slice) multiply(slice, slice + 1 == kSlices);
        } else {
#pragma unroll 1
          for (int slice = 0; slice < num_slices; ++slice) {
            multiply(slice, slice + 1 == num_slices);
          }
        }
        __syncwarp();
        if (lane == 0) loader.load_next();
        if (++stage == p.num_stages) {
          stage = 0;
          parity ^= 1;
        }
      }
      write_part(p, sums, lane, parts + warp * p.m * kPartStride);
      sync();
      store_sum<T>(p, parts, item, half, num_halves, rank, warp, lane, gate);
      parts += to_other_parts;
      to_other_parts = -to_other_parts;
    }
  }
  if (p.cluster > 1) sync_cluster_memory();
}

template <typename T, Values kValues, int kGroupSteps, bool kHasMinimums>
void launch_gemm(const LaunchContext& context, const LaunchShape& shape, const Params& p) {
  QUIRE_LAUNCH(*context.stream, (packed_gemm_kernel<T, kValues, kGroupSteps, kHasMinimums>), shape,
               p);
}

template <typename T>
void launch_gemm(const LaunchContext& context, const LaunchShape& shape, const Params& p) {
  with_groups(p.layout, [&](auto values, auto group_steps, auto has_minimums) {
    launch_gemm<T, values(), group_steps(), has_minimums()>(context, shape, p);
  });
}

// The number of parts of K: first the number of warps of a thread block. It is doubled while a
// panel has more blocks than parts and all thread blocks fit the SMs at once, up to the number of
// warps in a cluster of 8 thread blocks. It depends only on the matrix and the number of SMs, and
// so does the order of the sums.
int num_parts(const PackedRows& w, int num_sms) {
  constexpr int kMostParts = 8 * kWarps;
  int parts = kWarps;
  while (parts < kMostParts && parts < w.num_blocks() &&
         w.num_panels() * (parts / kWarps) * 2 <= num_sms) {
    parts *= 2;
  }
  return parts;
}

}  // namespace

PackedLayout packed_layout(const QuantizedFormat& format) {
  PackedLayout layout;
  layout.format = format;
  layout.format.group_k = std::min(format.group_k, layout.block_columns());
  layout.header = quantized_header(layout.format, layout.block_columns() / 32);
  if (layout.has_minimums()) layout.shifted = static_cast<float>(1 << (format.value_bits - 1));
  return layout;
}

bool packed_gemm_gates(const PackedRows& w) {
  return w.first_row == 0 && w.num_rows % (2 * kPanelRows) == 0;
}

void run_packed_gemm(const LaunchContext& context, int num_sms, const PackedGemmCall& call,
                     const PackedGemmTuning& tuning) {
  const PackedRows& w = *call.w;
  const int64_t m = call.x.shape[0];
  if (m == 0) return;
  const bool is_gated = call.gated_out.data != nullptr;
  QUIRE_CHECK(m <= kMaxPackedRows && (!is_gated || packed_gemm_gates(w)),
              "[ops] the kernel does not support this product with packed weights");
  const TensorView& out = is_gated ? call.gated_out : call.out;
  Params p = {};
  p.layout = w.layout;
  p.panels = static_cast<const unsigned char*>(w.panels);
  p.x = call.x.data;
  if (call.bias.data != nullptr) {
    p.bias = call.bias.as<const std::byte>() + w.first_row * dtype_bytes(call.x.dtype);
  }
  p.out = out.as<std::byte>() + (is_gated ? 0 : w.first_row * dtype_bytes(out.dtype));
  p.out_is_f32 = out.dtype == DType::kF32;
  p.m = static_cast<int>(m);
  p.n = static_cast<int>(is_gated ? w.num_rows / 2 : w.num_rows);
  p.k = static_cast<int>(w.num_columns);
  p.out_stride = out.shape[1];
  p.panel_bytes = w.panel_bytes();
  p.num_blocks = w.num_blocks();
  p.block_bytes = w.layout.block_bytes();
  p.last_block_bytes = static_cast<int>(w.last_block_bytes());
  p.group_shift = std::countr_zero(static_cast<unsigned>(w.layout.format.group_k));
  const int num_panels = is_gated ? w.num_panels() / 2 : w.num_panels();
  p.gated_panels = is_gated ? num_panels : 0;
  p.num_parts = num_parts(w, num_sms);
  // Items have more panels with more rows, if panels form whole items and clusters stay small
  // enough.
  p.panels_per_item = 1;
  const int wanted = m <= 2 ? 1 : m <= 4 ? 2 : 4;
  while (p.panels_per_item < wanted && num_panels % (2 * p.panels_per_item) == 0 &&
         p.num_parts * 2 * p.panels_per_item <= 8 * kWarps) {
    p.panels_per_item *= 2;
  }
  p.cluster = p.num_parts * p.panels_per_item / kWarps;
  p.num_items = num_panels / p.panels_per_item;
  p.stage_bytes = static_cast<int>(round_up(p.block_bytes, 128));
  p.num_stages = tuning.num_stages;
  const int most_clusters = std::max(num_sms * tuning.blocks_per_sm / p.cluster, 1);
  const int64_t grid = int64_t{std::min(p.num_items, most_clusters)} * p.cluster;
  LaunchShape shape = context.shape(grid, kThreads);
  shape.cluster = static_cast<unsigned>(p.cluster);
  shape.shared_bytes =
      static_cast<size_t>(shared_layout(p.stage_bytes, p.num_stages, p.m).num_bytes);
  with_half_type(call.x.dtype,
                 [&]<typename T>(std::type_identity<T>) { launch_gemm<T>(context, shape, p); });
}

}  // namespace quire::cuda
