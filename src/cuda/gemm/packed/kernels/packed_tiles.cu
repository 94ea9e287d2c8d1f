// The product with packed weights for 9 or more rows of x, by warpgroup instructions (wgmma).
//
// Work. A tile of the output is `panels` panels of w times kTokens rows of x. Operand A is w, in
// registers: each warp multiplies 16 rows of w, which are one tile of a slice, and each warpgroup
// two panels. Operand B is x, in shared memory. A cluster of `splits` thread blocks computes a
// tile. Each thread block has a range of the blocks of K, and all add up their parts in order
// through distributed shared memory. Tiles with the same panels are consecutive, so that the
// weights are read from device memory once and then from the L2.
//
// Each panel has a ring buffer of blocks in shared memory, which two warps read. The thread block
// has a ring buffer with slices of 64 columns of x. The warp that reads a stage last refills it. So
// no warp waits for another warp to issue copies, and all registers of an SM belong to warps that
// multiply. A warp unpacks a slice while the tensor cores multiply the previous slice. Copies of
// weights start before the wait for the previous kernel, because no kernel writes weights.
//
// x. Lane 4 g + q holds columns 4 q to 4 q + 3 of a step, but the instruction takes columns 2 q,
// 2 q + 1, 2 q + 8 and 2 q + 9. Therefore an earlier kernel (run_tile_columns) writes x in the
// order of the instruction, as images of the ring's stages, padded with zeros.
//
// Rows of x may be in groups that each have their own matrix: the experts of a layer. In this case,
// a list on the device names the tiles, each with rows of one group. Thread blocks without a tile
// exit.
//
// Numerics. E2M1 numbers times their scale, a power of two, become numbers of x's type. In BF16
// that is exact. In F16 a number above 65504 is infinite, and a scale below 2^-14 has an absolute
// error of up to 2^-25. Integers minus their zero point become numbers of x's type, which is exact.
// They are multiplied by the group's scale, and the group's minimum is subtracted, in x's type with
// one rounding. Scales and minimums are also rounded to x's type. All columns of a group have the
// same error of the scale. So a group's sum has a relative error of up to 2^-8 in BF16 and 2^-11 in
// F16. With minimums, the group's sum is a difference of two larger sums, and the error is relative
// to them. A scale below 2^-14 has an absolute error of up to 2^-25 in F16 instead. Sums are F32.
// Scaling the sums of groups in F32, as the kernel for few rows does, costs kTokens / 2
// instructions per thread and group and saves 4 per 8 weights. It is faster for tiles of up to 32
// tokens and groups of 64 or more columns. The kernel does so for weights of 4 bits without
// minimums and zero points; these weights are not rounded.
// minimums and zero points; these weights are not rounded.
#include <algorithm>
#include <bit>

#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/packed/kernels/packed_values.cuh"
#include "cuda/ops/activation.cuh"

namespace quire::cuda {
namespace {

using namespace packed;

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kMaxWarpgroups = 2;
constexpr int kMaxThreads = kMaxWarpgroups * 128;
constexpr int kBlocksPerSm = 2;
constexpr int kPanelsPerWarpgroup = 2;
constexpr int kMaxScaledSumTokens = 32;  // rows of x in tiles for which sums of groups are scaled
constexpr int kSwizzleAlignment = 1024;  // the alignment of the 128-byte swizzle
constexpr int kChunkSlices = kChunkColumns / kSliceColumns;  // per stage of x
constexpr int kSliceRowBytes = 128;                          // of x

struct Params {
  PackedLayout layout;
  const unsigned char* panels;
  const void* x;
  const void* bias;     // of the first row; null: none
  int64_t bias_stride;  // between matrices
  void* out;            // of the first row
  bool out_is_f32;
  bool out_is_aligned;  // outputs 4 i to 4 i + 3 of a token are aligned as a vector
  bool reads_once;      // the weights are read only once
  int m;
  int n;  // rows of w; half of them in a gated product
  int64_t out_stride;
  int64_t panel_bytes;
  int num_panels;  // panels of w, or of one half of w in a gated product
  int num_blocks;  // per panel
  int block_bytes;
  int last_block_bytes;
  int num_chunks;   // of K
  int group_shift;  // log2 of the columns of a group, or of a block if the group is larger
  int token_tiles;
  int is_gated;  // half of a tile's panels belong to the second half of w
  Activation activation;
  int splits;
  PackedGroups groups;  // without tiles, all rows are multiplied by one matrix
  int weight_stages;
  int stage_bytes;  // of a panel
  int x_stages;
};

struct SharedLayout {
  int weights;  // the offset of the panels' rings; x's ring is before them
  int barriers;
  int num_bytes;
};

// Floats per token of sums. The padding distributes the lanes of a store over all banks.
__host__ __device__ constexpr int part_stride(int panels) {
  return panels * static_cast<int>(kPanelRows) + 4;
}

__host__ __device__ constexpr SharedLayout shared_layout(int tokens, int panels, int x_stages,
                                                         int weight_stages, int stage_bytes) {
  SharedLayout layout = {};
  layout.weights = x_stages * kChunkSlices * tokens * kSliceRowBytes;
  const int rings = layout.weights + panels * weight_stages * stage_bytes;
  // The sums reuse the rings' memory when all products are complete.
  const int parts = tokens * part_stride(panels) * static_cast<int>(sizeof(float));
  layout.barriers = rings > parts ? rings : parts;
  const int num_stages = x_stages + panels * weight_stages;
  layout.num_bytes = kSwizzleAlignment + layout.barriers +
                     num_stages * static_cast<int>(sizeof(Mbarrier) + sizeof(unsigned));
  return layout;
}

// Stages that several warps read; each warp reads all stages in turn.
struct Ring {
  unsigned char* stages;
  Mbarrier* arrived;
  unsigned* num_read;  // per stage: the number of warps that have read it
  int stage_bytes;
  int num_stages;
  unsigned num_readers;

  __device__ __forceinline__ void init() const {
    for (int i = 0; i < num_stages; ++i) {
      arrived[i].init();
      num_read[i] = 0;
    }
  }
  // A warp calls this after it has read the stage. Returns true for one lane of the last such warp.
  __device__ __forceinline__ bool may_refill(int stage) const {
    __syncwarp();
    if (threadIdx.x % 32 != 0) return false;
    unsigned before = 0;
    asm volatile("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "r"(shared_address(&num_read[stage])), "r"(num_readers - 1)
                 : "memory");
    return before + 1 == num_readers;
  }
};

// The tile and the part of K that a thread block computes.
struct Place {
  int tile;
  int token_tile;
  int rank;  // in the cluster
  int first_block;
  int end_block;

  __device__ __forceinline__ explicit Place(const Params& p) {
    const auto idx = static_cast<int>(blockIdx.x);
    rank = idx % p.splits;
    token_tile = idx / p.splits % p.token_tiles;
    tile = idx / p.splits / p.token_tiles;
    first_block = rank * p.num_blocks / p.splits;
    end_block = (rank + 1) * p.num_blocks / p.splits;
  }
};

// The rows of x in a tile.
struct TileRows {
  int first;
  int count;
  int matrix;

  __device__ __forceinline__ TileRows(const Params& p, const Place& place, int most) {
    if (p.groups.tiles == nullptr) {
      first = place.token_tile * most;
      count = min(p.m - first, most);
      matrix = 0;
    } else {
      const wgmma::ExpertTile& tile = p.groups.tiles[place.token_tile];
      first = tile.first_row;
      count = tile.end_row - first;
      matrix = tile.expert;
    }
  }
};

// The number of panels of w in a tile, or of each half of w in a gated product.
__device__ __forceinline__ int tile_panels(const Params& p) {
  return static_cast<int>(blockDim.x) / (128 / kPanelsPerWarpgroup) >> p.is_gated;
}

// The index in w of the tile's panel `idx`. Past the end, it is the last panel, and its products
// are not stored.
__device__ __forceinline__ int panel_of(const Params& p, int tile, int idx) {
  const int count = tile_panels(p);
  const int half = idx / count;
  return min(tile * count + idx % count, p.num_panels - 1) + half * p.num_panels;
}

template <typename T>
__device__ __forceinline__ uint32_t multiply_add_pairs(uint32_t a, uint32_t b, uint32_t c) {
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  const Pair x = __hfma2(*reinterpret_cast<const Pair*>(&a), *reinterpret_cast<const Pair*>(&b),
                         *reinterpret_cast<const Pair*>(&c));
  return *reinterpret_cast<const uint32_t*>(&x);
}

// The factors of a row in a group, as pairs of T: a weight is (biased - zero) * scale + minimum.
struct RowFactors {
  uint32_t scale = 0;
  uint32_t zero = 0;
  uint32_t minimum = 0;
};

// Unpacks the weights of a warp's rows, slice by slice, into its A operands. kScalesSums: the
// operands are integers, and add_scaled() scales a group's sums.
template <typename T, Values kValues, bool kScalesSums>
class WeightReader {
  static constexpr int kBits = bits_of(kValues);
  static constexpr bool kIsE2m1 = kValues == Values::kE2m1;

 public:
  // A slice in registers. Each lane has the factors of one of the 16 rows in one or two of the
  // slice's groups: the scale in the lower half, and the zero point or the negative minimum in the
  // upper half. With kScalesSums, it has the scale in F32.
  struct Slice {
    TileWords<kBits> words;
    uint32_t factors[2];
    bool starts_group;
  };

  __device__ __forceinline__ explicit WeightReader(const Params& p) : p_(p) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    tile_ = static_cast<int>(threadIdx.x) / 32 % kTiles;
    row_ = tile_ * kPackedTileRows + lane % kPackedTileRows;
    column_ = !kScalesSums && group_shift() < 6 ? lane / kPackedTileRows << group_shift() : 0;
    // spread() selects the upper half of a lane's factors as a pair, or the default: zero, or
    // kBias.
    select_minimum_ = p.layout.format.has_zeros ? 0x4444 : 0x3232;
    select_zero_ = p.layout.format.has_zeros ? 0x3232 : 0x7654;
  }

  // Loads slice `idx` of a block.
  __device__ __forceinline__ void load(const unsigned char* block, int idx, Slice& slice) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    constexpr int kTileBytes = packed_tile_bytes(kBits);
    slice.words = load_tile<kBits>(
        block + p_.layout.header.num_bytes + (idx * kTiles + tile_) * kTileBytes, lane);
    if (!kIsE2m1 && !kScalesSums && idx == 0 && p_.layout.format.has_block_scales()) {
      block_scale_ = to_float(load_as<__half>(block + p_.layout.header.block_scales + 2 * row_));
      if (p_.layout.format.has_minimums) {
        block_minimum_ =
            to_float(load_as<__half>(block + p_.layout.header.block_minimums + 2 * row_));
      }
    }
    const int first = idx * kSliceColumns;
    slice.starts_group = (first & ((1 << group_shift()) - 1)) == 0;
    if (!slice.starts_group) return;
    slice.factors[0] = factors_of(block, (first + column_) >> group_shift());
    if (!kScalesSums && group_shift() == 4) {
      slice.factors[1] = factors_of(block, (first + 32 + column_) >> 4);
    }
  }

  // Unpacks the operands of the slice's steps. Must be called for the slices in order.
  __device__ __forceinline__ void make(const Slice& slice, uint32_t (&a)[kSteps][4]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if constexpr (!kScalesSums) take_factors(slice, step);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const RowFactors& of = rows_[i % 2];
        if constexpr (kIsE2m1) {
          a[step][i] = multiply_pairs<T>(e2m1_pair<T>(slice.words.low[step], i), of.scale);
        } else {
          const uint32_t biased = biased_pair<T, kBits>(slice.words, step, i);
          if constexpr (kScalesSums) {
            a[step][i] = subtract_pairs<T>(biased, kBias<T, kBits>);
          } else {
            a[step][i] =
                multiply_add_pairs<T>(subtract_pairs<T>(biased, of.zero), of.scale, of.minimum);
          }
        }
        // Prevents the compiler from moving this after wgmma::wait().
        asm volatile("" : "+r"(a[step][i]));
      }
    }
  }

  // Stores the scales of the group that begins with the slice.
  __device__ __forceinline__ void take_scales(const Slice& slice) {
    const int row = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      scales_[i] = __uint_as_float(__shfl_sync(kAllLanes, slice.factors[0], i * 8 + row));
    }
  }
  // Adds the scaled sums of a group. of_group holds wgmma accumulators.
  template <int kCount>
  __device__ __forceinline__ void add_scaled(const float (&of_group)[kCount],
                                             float (&sums)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = fmaf(scales_[i / 2 % 2], of_group[i], sums[i]);
  }

 private:
  __device__ __forceinline__ int group_shift() const {
    return kIsE2m1 ? 5 : p_.group_shift;
  }
  __device__ __forceinline__ uint32_t factors_of(const unsigned char* block, int group) const {
    const QuantizedHeader& header = p_.layout.header;
    const QuantizedFormat& format = p_.layout.format;
    const int at = group * static_cast<int>(kPanelRows) + row_;
    const unsigned char* const scales = block + header.scales;
    const unsigned char* const minimums = block + header.minimums;
    if constexpr (kIsE2m1) return pack<T>(e8m0_to_float(scales[at]), 0.0F);
    if (!kScalesSums && format.has_block_scales()) {
      const float scale = block_scale_ * static_cast<float>(load_as<int8_t>(scales + at));
      if (!format.has_minimums) return pack<T>(scale, 0.0F);
      const float minimum = block_minimum_ * static_cast<float>(minimums[at]);
      return pack<T>(scale, fmaf(scale, p_.layout.shifted, -minimum));
    }
    float scale = 0;
    if (format.scales == QuantizedScales::kF32) {
      scale = load_as<float>(scales + 4 * at);
    } else {
      const auto bits = load_as<uint16_t>(scales + 2 * at);
      scale = format.scales == QuantizedScales::kF16
                  ? to_float(__ushort_as_half(bits))
                  : __uint_as_float(static_cast<uint32_t>(bits) << 16);
    }
    if (!kScalesSums && format.has_minimums) {
      const float minimum = to_float(load_as<__half>(minimums + 2 * at));
      return pack<T>(scale, fmaf(scale, p_.layout.shifted, -minimum));
    }
    if constexpr (kScalesSums) return __float_as_uint(scale);
    if (!format.has_zeros) return pack<T>(scale, 0.0F);
    const uint32_t zero = block[header.zeros + at];
    if constexpr (kBias<T, kBits> != 0) {
      return __byte_perm(pack<T>(scale, 0.0F), kMagic<T> | zero, 0x5410);
    }
    return pack<T>(scale, static_cast<float>(zero) - static_cast<float>(1 << (kBits - 1)));
  }

  __device__ __forceinline__ void take_factors(const Slice& slice, int step) {
    if (step == 0) {
      if (slice.starts_group) spread(slice.factors[0], 0);
    } else if (group_shift() == 4) {
      spread(slice.factors[step / 2], step % 2);
    } else if (step == 2 && group_shift() == 5) {
      spread(slice.factors[0], 1);
    }
  }

  // Distributes the factors that one half of the warp has: each lane gets the factors of its two
  // rows.
  __device__ __forceinline__ void spread(uint32_t factors, int half) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t of =
          __shfl_sync(kAllLanes, factors, half * kPackedTileRows + i * 8 + lane / 4);
      rows_[i].scale = __byte_perm(of, 0, 0x1010);
      rows_[i].minimum = __byte_perm(of, 0, select_minimum_);
      rows_[i].zero = __byte_perm(of, kBias<T, kBits>, select_zero_);
    }
  }

  const Params& p_;
  int tile_;
  int row_;     // of the panel; this lane loads the row's factors
  int column_;  // of a slice; this lane loads the factors of the column's group
  unsigned select_minimum_;
  unsigned select_zero_;
  float block_scale_ = 0;
  float block_minimum_ = 0;
  RowFactors rows_[2];
  float scales_[2] = {};
};

// Four adjacent outputs of a token.
struct Quad {
  float v[4];
};

// The sum of the cluster's parts.
__device__ __forceinline__ Quad add_parts(const Params& p, const float* part) {
  Quad sum = {};
  for (int i = 0; i < p.splits; ++i) {
    const float4 more =
        p.splits == 1
            ? *reinterpret_cast<const float4*>(part)
            : load_vec_in_cluster(address_in(shared_address(part), static_cast<uint32_t>(i)));
    sum.v[0] += more.x;
    sum.v[1] += more.y;
    sum.v[2] += more.z;
    sum.v[3] += more.w;
  }
  return sum;
}

template <typename T>
__device__ __forceinline__ void add_bias(const Params& p, int matrix, int row, Quad& sum) {
  if (p.bias == nullptr) return;
  const T* const bias = static_cast<const T*>(p.bias) + matrix * p.bias_stride;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (row + i < p.n << p.is_gated) sum.v[i] += to_float(bias[row + i]);
  }
}

template <typename Out>
__device__ __forceinline__ void store_quad(const Params& p, int64_t token, int row,
                                           const Quad& quad) {
  Vec<Out, 4> numbers;
#pragma unroll
  for (int i = 0; i < 4; ++i) numbers.v[i] = from_float<Out>(quad.v[i]);
  Out* const to = static_cast<Out*>(p.out) + token * p.out_stride + row;
  if (p.out_is_aligned && row + 4 <= p.n) {
    store_vec(to, numbers);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (row + i < p.n) to[i] = numbers.v[i];
  }
}

// Adds up the parts of the cluster, and stores this thread block's share of the tile.
template <typename T, int kTokens>
__device__ __forceinline__ void store_tile(const Params& p, const Place& place,
                                           const float* parts) {
  const TileRows tokens(p, place, kTokens);
  const int rows = tile_panels(p) * static_cast<int>(kPanelRows);
  const int quad_shift = 31 - __clz(rows / 4);
  const int threads = static_cast<int>(blockDim.x);
  const int stride = part_stride(tile_panels(p) << p.is_gated);
  for (int i = place.rank * threads + static_cast<int>(threadIdx.x); i < tokens.count << quad_shift;
       i += p.splits * threads) {
    const int token = i >> quad_shift;
    const int tile_row = (i - (token << quad_shift)) * 4;
    const int row = place.tile * rows + tile_row;
    if (row >= p.n) continue;
    const float* const part = parts + token * stride + tile_row;
    Quad sum = add_parts(p, part);
    add_bias<T>(p, tokens.matrix, row, sum);
    if (p.is_gated != 0) {
      Quad up = add_parts(p, part + rows);
      add_bias<T>(p, tokens.matrix, p.n + row, up);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float gate = to_float(from_float<T>(sum.v[j]));
        sum.v[j] = logistic_gate<T>(p.activation, gate, to_float(from_float<T>(up.v[j])));
      }
    }
    if (p.out_is_f32) {
      store_quad<float>(p, tokens.first + token, row, sum);
    } else {
      store_quad<T>(p, tokens.first + token, row, sum);
    }
  }
}

// The bytes of a stage of x.
template <int kTokens>
constexpr int kStageOfXBytes = kChunkSlices* kTokens* kSliceRowBytes;

// The barriers of a thread block and the data that each protects. There are two kinds of rings: one
// ring of weights per panel, which the panel's kTiles warps read, and one ring of x, which all
// warps read.
//
//   load (one lane)                          multiply_tile (every warp of the ring)
//   bulk copy -> stage i  --- arrived[i] --> wait for arrived[i]; read stage i
//   next block or chunk <--- num_read[i] --- may_refill(): all warps of the ring have read stage i
//
//   __syncthreads             all products are complete, so the sums may reuse the rings' memory
//   sync_cluster_memory       the sums of each thread block, for the others of the cluster
//   sync_cluster_memory       the others have read this thread block's sums, so it may exit
struct Rings {
  Ring x;
  Ring weights;  // of the warp's panel
};

// Starts the bulk copies of a warp's weights and of the thread block's x. One lane calls its
// functions.
struct Loader {
  const Params& p;
  const Rings& rings;
  const unsigned char* panel;  // of the warp
  const unsigned char* x;      // of the token tile
  int end_block;
  int end_chunk;

  __device__ __forceinline__ void load_weights(int stage, int block) const {
    if (block >= end_block) return;
    const auto num_bytes =
        static_cast<uint32_t>(block + 1 == p.num_blocks ? p.last_block_bytes : p.block_bytes);
    Mbarrier& arrived = rings.weights.arrived[stage];
    unsigned char* const to = rings.weights.stages + stage * p.stage_bytes;
    const unsigned char* const from = panel + int64_t{block} * p.block_bytes;
    arrived.arrive_expecting(num_bytes);
    if (p.reads_once) {
      copy_bulk_evict_first(to, from, num_bytes, arrived);
    } else {
      copy_bulk(to, from, num_bytes, arrived);
    }
  }
  template <int kXBytes>
  __device__ __forceinline__ void load_x(int stage, int chunk) const {
    if (chunk >= end_chunk) return;
    rings.x.arrived[stage].arrive_expecting(kXBytes);
    copy_bulk(rings.x.stages + stage * kXBytes, x + int64_t{chunk} * kXBytes, kXBytes,
              rings.x.arrived[stage]);
  }
};

// sums = the warp's rows of w times the tile's rows of x, for the chunks from first_chunk on.
template <typename T, Values kValues, int kTokens, bool kScalesSums>
__device__ __forceinline__ void multiply_tile(const Params& p, const Rings& rings,
                                              const Loader& loader, int first_chunk,
                                              float (&sums)[kTokens / 2]) {
  constexpr int kChunks = packed_block_columns(bits_of(kValues)) / kChunkColumns;  // per block
  constexpr int kXBytes = kStageOfXBytes<kTokens>;
  using Reader = WeightReader<T, kValues, kScalesSums>;
  float scaled[kScalesSums ? kTokens / 2 : 1] = {};  // `sums` holds the sums of one group then
  int adds = 1;
  Reader reader(p);
  typename Reader::Slice weights;
  RingPosition weights_pos;
  RingPosition x_pos;
  const auto load_slice = [&](int chunk, int idx) {
    const int of_block = chunk % kChunks * kChunkSlices + idx;
    if (of_block == 0) rings.weights.arrived[weights_pos.stage].wait(weights_pos.parity);
    reader.load(rings.weights.stages + weights_pos.stage * p.stage_bytes, of_block, weights);
    if (of_block + 1 < kChunks * kChunkSlices) return;
    if (rings.weights.may_refill(weights_pos.stage)) {
      loader.load_weights(weights_pos.stage, chunk / kChunks + p.weight_stages);
    }
    __syncwarp();
    weights_pos.advance(p.weight_stages);
  };
  uint32_t a[kSteps][4];
  load_slice(first_chunk, 0);
  reader.make(weights, a);
  if constexpr (kScalesSums) reader.take_scales(weights);
#pragma unroll 1
  for (int chunk = first_chunk; chunk < loader.end_chunk; ++chunk) {
    rings.x.arrived[x_pos.stage].wait(x_pos.parity);
#pragma unroll
    for (int slice = 0; slice < kChunkSlices; ++slice) {
      if (slice + 1 < kChunkSlices) {
        load_slice(chunk, slice + 1);
      } else if (chunk + 1 < loader.end_chunk) {
        load_slice(chunk + 1, 0);
      }
      const unsigned char* const x =
          rings.x.stages + x_pos.stage * kXBytes + slice * (kXBytes / kChunkSlices);
      const uint64_t b = wgmma::operand_descriptor(shared_address(x));
      wgmma::keep(sums);
      wgmma::begin();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        wgmma::multiply<T, kTokens>(sums, a[step], b + step * 2, step == 0 ? adds : 1);
      }
      wgmma::commit();
      // Runs while the tensor cores multiply. The very last slice is unpacked twice.
      reader.make(weights, a);
      wgmma::keep(sums);
      wgmma::wait<0>();
      wgmma::keep(sums);
      if constexpr (kScalesSums) {
        adds = 1;
        if (weights.starts_group) {
          reader.add_scaled(sums, scaled);
          reader.take_scales(weights);
          adds = 0;
        }
      }
    }
    if (rings.x.may_refill(x_pos.stage)) {
      loader.load_x<kXBytes>(x_pos.stage, chunk + p.x_stages);
    }
    __syncwarp();
    x_pos.advance(p.x_stages);
  }
  if constexpr (kScalesSums) {
    // The sums of the last group are added here, unless the last slice completed the group.
    if (adds != 0) reader.add_scaled(sums, scaled);
#pragma unroll
    for (int i = 0; i < kTokens / 2; ++i) sums[i] = scaled[i];
  }
}

// Writes a warp's sums to the thread block's part of the tile, [tokens][part_stride(panels)].
template <int kTokens>
__device__ __forceinline__ void write_part(const float (&sums)[kTokens / 2], int panels, int warp,
                                           int lane, float* part) {
  const int stride = part_stride(panels);
#pragma unroll
  for (int i = 0; i < kTokens / 2; ++i) {
    const int token = i / 4 * 8 + lane % 4 * 2 + i % 2;
    const int row = warp * kPackedTileRows + i / 2 % 2 * 8 + lane / 4;
    part[token * stride + row] = sums[i];
  }
}

template <typename T, Values kValues, int kTokens, bool kScalesSums>
__global__ void __launch_bounds__(kMaxThreads, kBlocksPerSm)
    packed_tile_gemm_kernel(const __grid_constant__ Params p) {
  extern __shared__ unsigned char memory[];
  constexpr int kChunks = packed_block_columns(bits_of(kValues)) / kChunkColumns;  // per block
  constexpr int kXBytes = kStageOfXBytes<kTokens>;
  const auto warps = blockDim.x / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int panels = static_cast<int>(warps) / kTiles;
  const int panel = warp / kTiles;
  const SharedLayout layout =
      shared_layout(kTokens, panels, p.x_stages, p.weight_stages, p.stage_bytes);
  unsigned char* const start = memory + (-shared_address(memory) & (kSwizzleAlignment - 1));
  auto* const barriers = reinterpret_cast<Mbarrier*>(start + layout.barriers);
  auto* const counts =
      reinterpret_cast<unsigned*>(barriers + p.x_stages + panels * p.weight_stages);
  const int first_stage = panel * p.weight_stages;
  const Rings rings = {
      {start, barriers, counts, kXBytes, p.x_stages, warps},
      {start + layout.weights + first_stage * p.stage_bytes, barriers + p.x_stages + first_stage,
       counts + p.x_stages + first_stage, p.stage_bytes, p.weight_stages, kTiles}};
  const Place place(p);
  const unsigned char* panel_at = p.panels + panel_of(p, place.tile, panel) * p.panel_bytes;
  // Earlier kernels write the groups, and there may be fewer groups than thread blocks.
  if (p.groups.tiles != nullptr) {
    wait_for_previous_kernel();
    if (place.token_tile >= *p.groups.num_tiles) return;
    panel_at += p.groups.tiles[place.token_tile].expert * p.groups.matrix_bytes;
  }
  const int first_chunk = place.first_block * kChunks;
  const auto* const x_at =
      static_cast<const unsigned char*>(p.x) + int64_t{place.token_tile} * p.num_chunks * kXBytes;
  const Loader loader = {p,    rings,           panel_at,
                         x_at, place.end_block, min(place.end_block * kChunks, p.num_chunks)};

  if (threadIdx.x == 0) rings.x.init();
  if (warp % kTiles == 0 && lane == 0) {
    rings.weights.init();
    publish_barriers();
#pragma unroll 1
    for (int i = 0; i < p.weight_stages; ++i) loader.load_weights(i, place.first_block + i);
  }
  __syncthreads();
  trigger_dependent_launch();
  wait_for_previous_kernel();
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (int i = 0; i < p.x_stages; ++i) loader.load_x<kXBytes>(i, first_chunk + i);
  }
  __syncwarp();

  float sums[kTokens / 2] = {};
  multiply_tile<T, kValues, kTokens, kScalesSums>(p, rings, loader, first_chunk, sums);
  __syncthreads();
  auto* const part = reinterpret_cast<float*>(start);
  write_part<kTokens>(sums, panels, warp, lane, part);
  __syncwarp();
  if (p.splits > 1) {
    sync_cluster_memory();
  } else {
    __syncthreads();
  }
  store_tile<T, kTokens>(p, place, part);
  __syncwarp();
  if (p.splits > 1) sync_cluster_memory();
}

// Whether the kernel scales the sums of groups instead of the weights.
bool scales_sums(const Params& p) {
  const QuantizedFormat& format = p.layout.format;
  return !p.layout.has_minimums() && !format.has_block_scales() && p.group_shift >= 6;
}

template <typename T, Values kValues>
void launch_tiles(const LaunchContext& context, const LaunchShape& shape, int tokens,
                  const Params& p) {
  CudaStream& stream = *context.stream;
  const auto launch = [&]<int kTokens>(std::integral_constant<int, kTokens>) {
    if constexpr (kValues == Values::kInt4 && kTokens <= kMaxScaledSumTokens) {
      if (scales_sums(p)) {
        QUIRE_LAUNCH(stream, (packed_tile_gemm_kernel<T, kValues, kTokens, true>), shape, p);
        return;
      }
    }
    QUIRE_LAUNCH(stream, (packed_tile_gemm_kernel<T, kValues, kTokens, false>), shape, p);
  };
  if (tokens == 16) return launch(std::integral_constant<int, 16>());
  if (tokens == 32) return launch(std::integral_constant<int, 32>());
  if (tokens == 64) return launch(std::integral_constant<int, 64>());
  launch(std::integral_constant<int, 128>());
}

}  // namespace

int packed_tile_tokens(int64_t m) {
  return m <= 16 ? 16 : m <= 32 ? 32 : m <= 64 ? 64 : 128;
}

// On an H200, two thread blocks of two warpgroups per SM are as fast as one of four warpgroups, or
// up to 18 % faster. K is split 2 or 4 ways if all thread blocks still run at once; the largest
// such number is the fastest with up to 128 rows, and is also used with more. Clusters of 8 are
// slower, except with 14336 columns.
PackedTilePlan packed_tile_plan(const PackedRows& w, int64_t m, int num_sms) {
  PackedTilePlan plan;
  plan.tokens = packed_tile_tokens(m);
  if (w.num_panels() <= kPanelsPerWarpgroup) plan.warpgroups = 1;
  const int64_t tiles = ceil_div(w.num_panels(), plan.warpgroups * kPanelsPerWarpgroup) *
                        ceil_div(m, int64_t{plan.tokens});
  for (const int splits : {2, 4}) {
    const bool run_at_once = tiles * splits <= int64_t{kBlocksPerSm} * num_sms;
    if (run_at_once && splits <= w.num_blocks()) plan.splits = splits;
  }
  return plan;
}

void run_packed_tiles(const LaunchContext& context, const PackedTilePlan& plan,
                      const PackedGemmCall& call) {
  const PackedRows& w = *call.w;
  const int64_t m = call.x.shape[0];
  if (m == 0) return;
  const bool is_gated = call.gated_out.data != nullptr;
  QUIRE_CHECK(!is_gated || packed_gemm_gates(w),
              "[ops] the kernel does not support this product with packed weights");
  const TensorView& out = is_gated ? call.gated_out : call.out;
  Params p = {};
  p.layout = w.layout;
  p.panels = static_cast<const unsigned char*>(w.panels);
  p.x = call.x.data;
  const auto element_bytes = static_cast<int64_t>(dtype_bytes(out.dtype));
  if (call.bias.data != nullptr) {
    p.bias = call.bias.as<const std::byte>() + w.first_row * dtype_bytes(call.x.dtype);
    p.bias_stride = call.groups == nullptr ? 0 : call.bias.shape[1];
  }
  p.out = out.as<std::byte>() + (is_gated ? 0 : w.first_row * element_bytes);
  p.out_is_f32 = out.dtype == DType::kF32;
  p.out_stride = out.shape[1];
  p.out_is_aligned =
      p.out_stride % 4 == 0 &&
      reinterpret_cast<uintptr_t>(p.out) % static_cast<size_t>(4 * element_bytes) == 0;
  p.m = static_cast<int>(m);
  p.is_gated = is_gated ? 1 : 0;
  p.activation = call.activation;
  p.n = static_cast<int>(w.num_rows) >> p.is_gated;
  p.panel_bytes = w.panel_bytes();
  p.num_panels = w.num_panels() >> p.is_gated;
  p.num_blocks = w.num_blocks();
  p.block_bytes = w.layout.block_bytes();
  p.last_block_bytes = static_cast<int>(w.last_block_bytes());
  p.num_chunks = static_cast<int>(ceil_div(w.num_columns, int64_t{kChunkColumns}));
  p.group_shift = std::countr_zero(static_cast<unsigned>(w.layout.format.group_k));
  p.token_tiles = static_cast<int>(ceil_div(m, int64_t{plan.tokens}));
  if (call.groups != nullptr) {
    QUIRE_CHECK(call.groups->tiles != nullptr && plan.splits == 1,
                "[ops] a product of groups has no tiles, or divides K");
    p.groups = *call.groups;
    p.token_tiles = static_cast<int>(call.groups->most_tiles);
  }
  p.reads_once = p.token_tiles == 1;
  p.splits = plan.splits;
  p.stage_bytes = static_cast<int>(round_up(p.block_bytes, 128));

  // The thread blocks of an SM share its shared memory. x's ring takes up to 45 % of a thread
  // block's part, but at least two stages. With two stages of x and two of the largest blocks of
  // weights, an SM may have room for only one thread block.
  const int panels = plan.warpgroups * kPanelsPerWarpgroup;
  constexpr int kReservedBytes = 1024;  // reserved by the system per thread block
  const int memory =
      (static_cast<int>(context.stream->limits().max_shared_bytes) + kReservedBytes) /
          kBlocksPerSm -
      kReservedBytes;
  const int x_bytes = kChunkSlices * plan.tokens * kSliceRowBytes;
  p.x_stages = std::clamp(memory * 9 / 20 / x_bytes, 2, 4);
  p.weight_stages = 8;
  const auto bytes = [&] {
    return shared_layout(plan.tokens, panels, p.x_stages, p.weight_stages, p.stage_bytes).num_bytes;
  };
  while (p.weight_stages > 2 && bytes() > memory) --p.weight_stages;

  const int64_t tiles = ceil_div(p.num_panels, panels >> p.is_gated);
  LaunchShape shape =
      context.shape(tiles * p.token_tiles * plan.splits, plan.warpgroups * int64_t{128});
  shape.cluster = static_cast<unsigned>(plan.splits);
  shape.shared_bytes = static_cast<size_t>(bytes());
  with_half_type(call.x.dtype, [&]<typename T>(std::type_identity<T>) {
    with_values(w.layout,
                [&](auto values) { launch_tiles<T, values()>(context, shape, plan.tokens, p); });
  });
}

}  // namespace quire::cuda
