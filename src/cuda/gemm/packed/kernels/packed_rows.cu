// Kernels that unpack rows of packed matrices, and kernels that reorder the activations for
// products with packed matrices.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/gemm/packed/kernels/packed_values.cuh"

namespace quire::cuda {
namespace {

using namespace packed;

constexpr int kThreads = 256;
constexpr int kUnpackWarps = 8;

// Grid: (groups of kUnpackWarps blocks of a panel, panels). A warp unpacks one block.
template <typename T, Values kValues, bool kHasMinimums>
__global__ void unpack_rows_kernel(PackedRows w, int first_panel, const int32_t* order, T* out,
                                   int num_rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int block_idx = static_cast<int>(blockIdx.x) * kUnpackWarps + threadIdx.x / 32;
  wait_for_previous_kernel();
  trigger_dependent_launch();
  if (block_idx >= w.num_blocks()) return;
  constexpr int kBits = bits_of(kValues);
  constexpr int kTileBytes = packed_tile_bytes(kBits);
  constexpr int kBlockColumns = packed_block_columns(kBits);
  const unsigned char* const block = static_cast<const unsigned char*>(w.panels) +
                                     (first_panel + int64_t{blockIdx.y}) * w.panel_bytes() +
                                     block_idx * int64_t{w.layout.block_bytes()};
  const int end = min(kBlockColumns, static_cast<int>(w.num_columns) - block_idx * kBlockColumns);
  for (int slice = 0; slice * kSliceColumns < end; ++slice) {
    const unsigned char* const values = block + w.layout.header.num_bytes + slice * 2 * kTileBytes;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const TileWords<kBits> words = load_tile<kBits>(values + tile * kTileBytes, lane);
      GroupScale scales[2] = {};  // of the lane's rows
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int column = slice * kSliceColumns + step * 16 + lane % 4 * 4;
        uint32_t a[4];
        unpack_step<T, kValues>(words, step, a);
        if (column >= end) continue;
        const bool starts_group = step == 0 || column / 16 * 16 % w.layout.format.group_k == 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int panel_row = tile * kPackedTileRows + half * 8 + lane / 4;
          const int row = static_cast<int>(blockIdx.y * kPanelRows) + panel_row;
          if (row >= num_rows) continue;
          GroupScale& of = scales[half];
          if (starts_group) {
            of = group_scale<kValues == Values::kE2m1, kHasMinimums, true>(
                w.layout, block, panel_row, column / w.layout.format.group_k);
          }
          const T* const pairs[2] = {reinterpret_cast<const T*>(&a[half]),
                                     reinterpret_cast<const T*>(&a[2 + half])};
          Vec<T, 4> numbers;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            numbers.v[i] = from_float<T>(of.scale * to_float(pairs[i / 2][i % 2]) - of.minimum);
          }
          const int64_t at = block_idx * kBlockColumns + column;
          T* const to = out + row * w.num_columns;
          if (order == nullptr) {
            store_vec(to + at, numbers);
          } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) to[order[at + i]] = numbers.v[i];
          }
        }
      }
    }
  }
}

// Grid: one thread block per id.
template <typename T>
__global__ void gather_packed_rows_kernel(PackedRows w, const int32_t* ids, const int32_t* order,
                                          float scale, T* out) {
  wait_for_previous_kernel();
  trigger_dependent_launch();
  const int64_t row = ids[blockIdx.x] - w.first_row;
  if (row < 0 || row >= w.num_rows) return;
  const PackedLayout& layout = w.layout;
  const int bits = layout.format.value_bits;
  const int block_columns = layout.block_columns();
  const auto panel_row = static_cast<int>(row % kPanelRows);
  const unsigned char* const panel =
      static_cast<const unsigned char*>(w.panels) + row / kPanelRows * w.panel_bytes();
  for (int k = static_cast<int>(threadIdx.x) * 4; k < w.num_columns;
       k += static_cast<int>(blockDim.x) * 4) {
    const unsigned char* const block = panel + k / block_columns * int64_t{layout.block_bytes()};
    const int column = k % block_columns;
    const auto* const words = reinterpret_cast<const uint32_t*>(
        block + layout.header.num_bytes + column / kSliceColumns * layout.slice_bytes());
    const PackedQuad quad = packed_quad(bits, panel_row, column % kSliceColumns);
    const int group = column / layout.format.group_k;
    const GroupScale of =
        layout.is_e2m1()        ? group_scale<true, false, false>(layout, block, panel_row, group)
        : layout.has_minimums() ? group_scale<false, true, true>(layout, block, panel_row, group)
                                : group_scale<false, false, true>(layout, block, panel_row, group);
    for (int i = 0; i < 4; ++i) {
      uint32_t value = 0;
      if (bits == 8) {
        value = (words[quad.word + i / 2] >> (quad.shift + 16 * (i % 2))) & 0xFFU;
      } else {
        value = (words[quad.word] >> (quad.shift + 8 * (i / 2) + 16 * (i % 2))) & 0xFU;
      }
      if (bits == 6) {
        const uint32_t high =
            words[quad.high_word] >> (quad.high_shift + 4 * (i / 2) + 16 * (i % 2));
        value |= (high & 3U) << 4;
      }
      float centered = static_cast<float>(value) - static_cast<float>(1 << (bits - 1));
      if (layout.is_e2m1()) {
        const uint32_t pair =
            e2m1_pair<__nv_bfloat16>(words[quad.word], quad.shift / 4 + i / 2 * 2);
        centered = __uint_as_float(pair >> (16 * (i % 2)) << 16);
      }
      const float number = of.scale * centered - of.minimum;
      const int64_t to = order == nullptr ? k + i : order[k + i];
      out[blockIdx.x * w.num_columns + to] = from_float<T>(scale * number);
    }
  }
}

// Grid: one thread block per row.
template <typename T>
__global__ void permute_columns_kernel(const T* x, const int32_t* order, T* out, int64_t width) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t row = int64_t{blockIdx.x} * width;
  for (int64_t k = threadIdx.x; k < width; k += blockDim.x) {
    out[row + k] = x[row + (order == nullptr ? k : order[k])];
  }
}

// The source of a tile's rows. Row r of tile t is row t * tile_rows + r of x. With groups it is row
// x_rows[first row of the group + r].
struct TileSource {
  PackedGroups groups;  // without tiles, all rows are multiplied by one matrix
  const int32_t* x_rows = nullptr;
  const int32_t* order = nullptr;  // of the columns, per matrix
  int num_rows = 0;
  int num_tiles = 0;
};

// The kernel of run_tile_columns(). Grid: steps of 16 columns of all rows of the tiles. A thread
// writes one step of a row.
template <typename T>
__global__ void tile_columns_kernel(const T* x, TileSource source, T* out, int64_t width,
                                    int tile_rows, int num_steps, bool is_aligned) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int idx = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int padded_row = idx / num_steps;
  const int step = idx % num_steps;
  const int tile = padded_row / tile_rows;
  const int tile_row = padded_row % tile_rows;
  const bool has_groups = source.groups.tiles != nullptr;
  if (tile >= (has_groups ? *source.groups.num_tiles : source.num_tiles)) return;
  int64_t row = padded_row;
  bool exists = padded_row < source.num_rows;
  const int32_t* order = source.order;
  if (has_groups) {
    const wgmma::ExpertTile group = source.groups.tiles[tile];
    row = group.first_row + tile_row;
    exists = row < group.end_row;
    if (exists && source.x_rows != nullptr) row = source.x_rows[row];
    if (order != nullptr) order += group.expert * width;
  }
  const int64_t first = int64_t{step} * 16;
  Vec<T, 8> halves[2] = {};
  if (exists) {
    const T* const from = x + row * width;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (first + half * 8 >= width) continue;  // the width is a multiple of 8
      if (is_aligned && order == nullptr) {
        halves[half] = load_vec<8>(from + first + half * 8);
        continue;
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int64_t column = first + half * 8 + i;
        halves[half].v[i] = from[order == nullptr ? column : order[column]];
      }
    }
  }
  const auto slice = static_cast<int64_t>(step / kSteps);
  const int64_t num_slices = num_steps / kSteps;
  T* const to = out + ((tile * num_slices + slice) * tile_rows + tile_row) * kSliceColumns;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    Vec<T, 8> chunk;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int column = i / 2 * 4 + half * 2 + i % 2;
      chunk.v[i] = halves[column / 8].v[column % 8];
    }
    store_vec(to + ((step % kSteps * 2 + half) ^ (tile_row % 8)) * 8, chunk);
  }
}

void tile_columns(const LaunchContext& context, const TensorView& x, const TileSource& source,
                  int64_t num_tiles, int tile_rows, void* out) {
  const int64_t num_steps = round_up(x.shape[1], int64_t{kChunkColumns}) / 16;
  const int64_t threads = num_tiles * tile_rows * num_steps;
  const bool is_aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  with_half_type(x.dtype, [&]<typename T>(std::type_identity<T>) {
    QUIRE_LAUNCH(*context.stream, tile_columns_kernel<T>,
                 context.shape(ceil_div(threads, int64_t{kThreads}), kThreads),
                 static_cast<const T*>(x.data), source, static_cast<T*>(out), x.shape[1], tile_rows,
                 static_cast<int>(num_steps), is_aligned);
  });
}

}  // namespace

void run_unpack_rows(const LaunchContext& context, const PackedRows& w, int64_t first_row,
                     const int32_t* order, const TensorView& out) {
  const int64_t num_rows = out.shape[0];
  const LaunchShape shape = context.shape(ceil_div(w.num_blocks(), kUnpackWarps), kUnpackWarps * 32,
                                          ceil_div(num_rows, kPanelRows));
  with_half_type(out.dtype, [&]<typename T>(std::type_identity<T>) {
    with_values(w.layout, [&](auto values) {
      const auto launch = [&](auto has_minimums) {
        QUIRE_LAUNCH(*context.stream, (unpack_rows_kernel<T, values(), has_minimums()>), shape, w,
                     static_cast<int>(first_row / kPanelRows), order, static_cast<T*>(out.data),
                     static_cast<int>(num_rows));
      };
      if constexpr (values() == Values::kE2m1) {
        launch(std::false_type());
      } else {
        with_bool(w.layout.has_minimums(), launch);
      }
    });
  });
}

void run_gather_packed_rows(const LaunchContext& context, const PackedRows& w, const int32_t* ids,
                            const int32_t* order, float scale, const TensorView& out) {
  with_half_type(out.dtype, [&]<typename T>(std::type_identity<T>) {
    QUIRE_LAUNCH(*context.stream, gather_packed_rows_kernel<T>,
                 context.shape(out.shape[0], kThreads), w, ids, order, scale,
                 static_cast<T*>(out.data));
  });
}

void run_permute_columns(const LaunchContext& context, const TensorView& x, const int32_t* order,
                         const TensorView& out) {
  with_half_type(out.dtype, [&]<typename T>(std::type_identity<T>) {
    QUIRE_LAUNCH(*context.stream, permute_columns_kernel<T>, context.shape(x.shape[0], kThreads),
                 static_cast<const T*>(x.data), order, static_cast<T*>(out.data), x.shape[1]);
  });
}

void run_tile_columns(const LaunchContext& context, const TensorView& x, const int32_t* order,
                      int tile_rows, void* out) {
  const int64_t num_tiles = ceil_div(x.shape[0], int64_t{tile_rows});
  TileSource source;
  source.order = order;
  source.num_rows = static_cast<int>(x.shape[0]);
  source.num_tiles = static_cast<int>(num_tiles);
  tile_columns(context, x, source, num_tiles, tile_rows, out);
}

void run_tile_columns(const LaunchContext& context, const TensorView& x, const int32_t* order,
                      const PackedGroups& groups, const int32_t* x_rows, int tile_rows, void* out) {
  QUIRE_CHECK(groups.tiles != nullptr, "[ops] packed products of groups need tiles");
  TileSource source;
  source.groups = groups;
  source.x_rows = x_rows;
  source.order = order;
  tile_columns(context, x, source, groups.most_tiles, tile_rows, out);
}

}  // namespace quire::cuda
