// Products of many rows with AMX tiles of bytes. AVX-512 computes everything else. `Tiles` are the
// tile instructions (cpu/ops/amx/tiles-inl.h).
//
// A step multiplies 16 rows by half a panel, which is 16 features, for the k that share a scale. It
// needs one tile product per term of the activations and per 64 k, or per group if a group has
// fewer k. Tiles cannot be moved to vector registers. Therefore a step stores its integer sums, and
// AVX-512 applies the scales to them while the tiles compute the next steps.
//
// Limits. A tile product of 16 rows takes 16 cycles for any number of k. Per cycle, this is 8 times
// the products of VNNI with 64 k, and 4 times with 32 k. With two terms, a step of 32 k takes 32
// cycles of the tiles, 32 cycles of the stores, and 40 cycles of AVX-512, which has two
// instructions per cycle and needs 5 per row (shift, add, conversion, scale, minimum). VNNI takes
// 168 cycles for the same. With one term, the three numbers are 16, 16 and 24, and VNNI takes 88.
// With longer groups, only the cycles of the tiles increase. Measured times
// (bench/results/cpu/kernels.md) are far above these limits: a step of Q4_K takes 180 to 190 cycles
// with one term or two; VNNI takes 180 and 360.
//
// The activations of 16 rows are stored together: for each block, Activations[16], then
// int8_t[term][kBlockK / 64][16 rows][64 k], and with one term Multipliers[16].
#pragma once

#include "cpu/ops/amx/tiles-inl.h"
#include "cpu/ops/quantized/avx512_vnni-inl.h"

namespace quire::cpu::quantized {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileK = 64;
constexpr int64_t kTileBytes = kTileRows * kTileK;
constexpr int64_t kTileIntegers = kTileRows * 16;  // the sums of a tile
constexpr int64_t kMaxGroups = kBlockK / 16;       // the maximum number of groups with their own
                                                   // scales in a block
constexpr int64_t kQuadBytes = kFeatures * kBytesPerLane;
constexpr int64_t kHalfBytes = kQuadBytes / 2;
constexpr int64_t kMultipliers = sizeof(Multipliers);
static_assert(kFeatures == 2 * Avx512Vnni::kLanes && kMaxRows % kTileRows == 0);

// The smallest number of rows for which tiles are faster than VNNI, measured for Q4_K, Q6_K, Q8_0
// and 4 bits in groups of 128 (bench/results/cpu/kernels.md). Other formats use the number of the
// most similar of these.
int64_t min_tile_rows(const Format& format, int num_terms) {
  constexpr int64_t kNever = kMaxRows + 1;
  if (format.group_k < kGroupK) return kNever;
  if (num_terms == 1) return format.value_bits == 8 ? kTileRows : kNever;
  if (format.group_k > kGroupK) return kTileRows;
  return format.value_bits == 4 ? kTileRows : 2 * kTileRows;
}

// One term gains nothing with longer groups: a tile product then covers 64 k with two terms, but
// only 32 with one.
bool gains_by_one_term(const Format& format) {
  return format.group_k <= kGroupK;
}

constexpr int64_t row_tile_bytes(int num_terms) {  // of one block
  return kTileRows * activation_bytes(num_terms);
}

// Writes the integers of a block (which follow Activations in the other kernels) for row `lane` of
// a row tile.
template <int kTerms>
void write_integers(const std::byte* from, int64_t lane, std::byte* row_tile) {
  std::byte* to = row_tile + kTileRows * static_cast<int64_t>(sizeof(Activations)) + lane * kTileK;
  for (int64_t k = 0; k < kBlockK; k += kTileK, to += kTileBytes, from += kTerms * kTileK) {
    const __m512i first = _mm512_load_si512(from);
    if constexpr (kTerms == 1) {
      _mm512_store_si512(to, first);
    } else {  // the input alternates between quads of q0 and of q1
      const __m512i even =
          _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
      const __m512i second = _mm512_load_si512(from + kTileK);
      _mm512_store_si512(to, _mm512_permutex2var_epi32(first, even, second));
      _mm512_store_si512(to + kBlockK / kTileK * kTileBytes,
                         _mm512_permutex2var_epi32(first, odd, second));
    }
  }
}

// Missing rows of the last tile get sums, scales and multipliers of zero; their integers are
// arbitrary.
template <int kTerms>
void quantize_tile_row(const float* x, int64_t num_k, int64_t row, int64_t num_rows,
                       std::byte* out) {
  constexpr int64_t kHeader = sizeof(Activations);
  const int64_t num_blocks = (num_k + kBlockK - 1) / kBlockK;
  const int64_t lane = row % kTileRows;
  std::byte* row_tile = out + row / kTileRows * num_blocks * row_tile_bytes(kTerms);
  for (int64_t k = 0; k < num_k; k += kBlockK, row_tile += row_tile_bytes(kTerms)) {
    alignas(64) std::byte block[activation_bytes(kTerms)];
    quantize_block<Avx512Vnni, kTerms>(x + k, num_k - k < kBlockK ? num_k - k : kBlockK, block);
    __builtin_memcpy(row_tile + lane * kHeader, block, kHeader);
    write_integers<kTerms>(block + kHeader, lane, row_tile);
    const auto clear_missing = [&](std::byte* from, int64_t bytes_per_row) {
      if (row + 1 < num_rows) return;
      __builtin_memset(from + (lane + 1) * bytes_per_row, 0,
                       static_cast<size_t>((kTileRows - 1 - lane) * bytes_per_row));
    };
    clear_missing(row_tile, kHeader);
    if constexpr (kTerms == 1) {
      std::byte* const to = row_tile + kTileRows * (kHeader + kBlockK);
      __builtin_memcpy(to + lane * kMultipliers, block + kHeader + kBlockK, kMultipliers);
      clear_missing(to, kMultipliers);
    }
  }
}

void quantize_tile_row(const float* x, int64_t num_k, int num_terms, int64_t row, int64_t num_rows,
                       std::byte* out) {
  num_terms == 1 ? quantize_tile_row<1>(x, num_k, row, num_rows, out)
                 : quantize_tile_row<2>(x, num_k, row, num_rows, out);
}

// The offsets of a group's k in a block's weights and in a row tile's integers, in bytes, and the
// number of tile products for the group. If there are several products, each has kTileK, and the
// last may have fewer.
struct GroupK {
  int64_t weights;
  int64_t x;
  int64_t num_products;
};

// The weights of a block of a panel: integers as bytes, [kBlockK / 4][32 features][4 k], and the
// scales, minimums and zero points of the sums of products.
struct Weights {
  const std::byte* values;
  int64_t num_groups;
  GroupK groups[kMaxGroups];
  alignas(64) float scales[kMaxGroups][kFeatures];
  alignas(64) float minimums[kMaxGroups][kFeatures];
  alignas(64) int32_t zeros[kMaxGroups][kFeatures];
  alignas(64) std::byte unpacked[kBlockK / kBytesPerLane * kQuadBytes] = {};
};

using E2m1Vnni = WithE2m1<Avx512Vnni>;

template <int kBits, class Isa = Avx512Vnni>
void unpack_values(const std::byte* from, int64_t groups, std::byte* to) {
  for (int64_t g = 0; g < groups; ++g, from += group_bytes(kBits)) {
#pragma GCC unroll 8
    for (int quad = 0; quad < 2 * kQuadsPerHalf; ++quad, to += kQuadBytes) {
      _mm512_store_si512(to, unpack<Isa, kBits>(from, quad, 0));
      _mm512_store_si512(to + kHalfBytes, unpack<Isa, kBits>(from, quad, 1));
    }
  }
}

// The bytes of a whole block are used in place. A tile may read beyond the k of an incomplete
// block, where `unpacked` has arbitrary values; the activations there are zeros.
void read_values(const Format& format, const std::byte* from, int64_t groups, Weights& weights) {
  weights.values = weights.unpacked;
  if (format.values == QuantizedValues::kE2m1) {
    return unpack_values<4, E2m1Vnni>(from, groups, weights.unpacked);
  }
  if (format.value_bits == 4) return unpack_values<4>(from, groups, weights.unpacked);
  if (format.value_bits == 6) return unpack_values<6>(from, groups, weights.unpacked);
  if (groups < kBlockK / kGroupK) return unpack_values<8>(from, groups, weights.unpacked);
  weights.values = from;
}

template <class Isa, int kTerms, bool kHasZeros>
void read_weights(const Format& format, const std::byte* block, int64_t groups, Weights& weights) {
  const GroupScales<Isa, true> scales(format, block, groups);
  read_values(format, block + header_bytes(format, groups), groups, weights);
  const int64_t part_k = product_k(format, kTerms);
  weights.num_groups = (groups * kGroupK + part_k - 1) / part_k;
  for (int64_t g = 0; g < weights.num_groups; ++g) {
    const int64_t first = g * part_k;
    const int64_t rest = groups * kGroupK - first;
    const int64_t num_k = part_k < rest ? part_k : rest;
    const int64_t from = first / format.group_k;
    weights.groups[g] = {.weights = first / kBytesPerLane * kQuadBytes,
                         .x = first / kTileK * kTileBytes + first % kTileK,
                         .num_products = (num_k + kTileK - 1) / kTileK};
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t at = half * Avx512Vnni::kLanes;
      const __m512 scale = scales.scale(from, half);
      _mm512_store_ps(weights.scales[g] + at, scale);
      if constexpr (kHasZeros) {
        _mm512_store_si512(weights.zeros[g] + at, scales.zero(from, half));
      } else {
        _mm512_store_ps(weights.minimums[g] + at, scales.minimum(from, half, scale));
      }
    }
  }
}

// Configures the tiles for products of tile_k. In each set, tiles 0 and 1 hold the sums of one term
// each, tile 2 activations, and tile 3 weights. Steps alternate between two sets.
template <class Tiles>
void configure(int64_t tile_k) {
  amx::TileConfig config;
  for (int set = 0; set < 8; set += 4) {
    for (int tile = 0; tile < 4; ++tile) {
      config.row_bytes[set + tile] = kTileK;
      config.rows[set + tile] = kTileRows;
    }
    config.row_bytes[set + 2] = static_cast<uint16_t>(tile_k);
    config.rows[set + 3] = static_cast<uint8_t>(tile_k / kBytesPerLane);
  }
  Tiles::configure(config);
}

// The products of 16 rows with one group of half a panel. `x` has the rows' integers.
template <class Tiles, int kTerms, int kSet>
void multiply_group(const Weights& weights, int64_t group, int64_t half, const std::byte* x,
                    int32_t (*products)[kTileIntegers]) {
  constexpr int kSums = 4 * kSet, kX = kSums + 2, kW = kSums + 3;
  const GroupK at = weights.groups[group];
  const std::byte* w = weights.values + at.weights + half * kHalfBytes;
  x += at.x;
  Tiles::template zero<kSums>();
  if constexpr (kTerms == 2) Tiles::template zero<kSums + 1>();
  for (int64_t i = 0; i < at.num_products; ++i) {
    Tiles::template load<kW>(w, kQuadBytes);
    Tiles::template load<kX>(x, kTileK);
    Tiles::template multiply_int8<kSums, kX, kW>();
    if constexpr (kTerms == 2) {
      Tiles::template load<kX>(x + kBlockK / kTileK * kTileBytes, kTileK);
      Tiles::template multiply_int8<kSums + 1, kX, kW>();
    }
    w += kTileK / kBytesPerLane * kQuadBytes;
    x += kTileBytes;
  }
  Tiles::template store<kSums>(products[0], kTileK);
  if constexpr (kTerms == 2) Tiles::template store<kSums + 1>(products[1], kTileK);
}

// Adds a group's products to block_sums[row]; `sums` points to the sum of row 0's integers in the
// group, and `multipliers` to their multiplier.
template <int kTerms, bool kHasZeros>
inline __attribute__((always_inline)) void add_group(const Weights& weights, int64_t group,
                                                     int64_t half, const std::byte* sums,
                                                     const std::byte* multipliers,
                                                     const int32_t (*products)[kTileIntegers],
                                                     __m512 (&block_sums)[kTileRows]) {
  using Isa = Avx512Vnni;
  const int64_t at = half * Isa::kLanes;
  const __m512 scale = _mm512_load_ps(weights.scales[group] + at);
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    const float sum =
        *reinterpret_cast<const float*>(sums + r * static_cast<int64_t>(sizeof(Activations)));
    __m512i product = _mm512_load_si512(products[0] + r * Isa::kLanes);
    if constexpr (kTerms == 2) {
      const __m512i upper = _mm512_load_si512(products[1] + r * Isa::kLanes);
      product = Isa::add(product, Isa::shift<-8>(upper));
    }
    __m512& block_sum = block_sums[r];
    if constexpr (kHasZeros) {
      const __m512i zero = _mm512_load_si512(weights.zeros[group] + at);
      const __m512i zeros = Isa::multiply(zero, Isa::set1_int(static_cast<int32_t>(sum)));
      block_sum = Isa::mul_add(scale, Isa::to_float(Isa::subtract(product, zeros)), block_sum);
    } else {
      const __m512 minimum = _mm512_load_ps(weights.minimums[group] + at);
      __m512 number = Isa::to_float(product);
      if constexpr (kTerms == 1) {
        const auto* const from = reinterpret_cast<const float*>(multipliers + r * kMultipliers);
        number = Isa::mul(number, Isa::set1(*from));
      }
      block_sum = Isa::mul_add(scale, number, block_sum);
      block_sum = Isa::neg_mul_add(minimum, Isa::set1(sum), block_sum);
    }
  }
}

// sums[row] += one block of the row tiles at x, which are x_stride bytes apart, · the block's
// weights.
template <class Tiles, int kTerms, bool kHasZeros>
void multiply_row_tiles(const Weights& weights, int part_k, const std::byte* x, int64_t x_stride,
                        int64_t num_row_tiles, float (*sums)[kFeatures]) {
  constexpr int64_t kHeaders = kTileRows * static_cast<int64_t>(sizeof(Activations));
  // The number of steps by which the tiles are ahead of AVX-512. The products of these steps fill 4
  // KiB. With more steps, a load of products would wait for stores to the same offset in another
  // page.
  constexpr int64_t kAhead = 4 / kTerms;
  alignas(64) int32_t products[kAhead][kTerms][kTileIntegers];
  struct Step {
    int64_t row_tile = 0;
    int64_t half = 0;
    int64_t group = 0;
  } next;
  const auto multiply_next = [&](int64_t slot) __attribute__((always_inline)) {
    if (next.row_tile == num_row_tiles) return;
    const std::byte* const integers = x + next.row_tile * x_stride + kHeaders;
    slot % 2 == 0
        ? multiply_group<Tiles, kTerms, 0>(weights, next.group, next.half, integers, products[slot])
        : multiply_group<Tiles, kTerms, 1>(weights, next.group, next.half, integers,
                                           products[slot]);
    if (++next.group < weights.num_groups) return;
    next.group = 0;
    next.half = 1 - next.half;
    if (next.half == 0) ++next.row_tile;
  };
  for (int64_t slot = 0; slot < kAhead; ++slot) multiply_next(slot);
  const int64_t offset = sums_offset(part_k);
  int64_t slot = 0;
  for (int64_t row_tile = 0; row_tile < num_row_tiles; ++row_tile) {
    const std::byte* const headers = x + row_tile * x_stride;
    for (int64_t half = 0; half < 2; ++half) {
      __m512 block_sums[kTileRows];
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) block_sums[r] = _mm512_setzero_ps();
      for (int64_t group = 0; group < weights.num_groups; ++group) {
        const std::byte* const group_sums =
            headers + offset + group * static_cast<int64_t>(sizeof(float));
        const int64_t group_32 = group * part_k / kGroupK;
        const std::byte* const multipliers = headers + kTileRows * kBlockK + kHeaders +
                                             group_32 * static_cast<int64_t>(sizeof(float));
        add_group<kTerms, kHasZeros>(weights, group, half, group_sums, multipliers, products[slot],
                                     block_sums);
        multiply_next(slot);
        slot = (slot + 1) % kAhead;
      }
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        float* const sum = sums[row_tile * kTileRows + r] + half * Avx512Vnni::kLanes;
        const float scale = reinterpret_cast<const Activations*>(headers)[r].scale;
        _mm512_store_ps(sum,
                        _mm512_fmadd_ps(_mm512_set1_ps(scale), block_sums[r], _mm512_load_ps(sum)));
      }
    }
  }
}

template <class Tiles, int kTerms, bool kHasZeros>
void run_terms_with_tiles(const Task& task) {
  constexpr int64_t kGroups = kBlockK / kGroupK;
  const int64_t num_row_tiles = (task.num_rows + kTileRows - 1) / kTileRows;
  const int64_t x_stride = task.num_blocks() * row_tile_bytes(kTerms);
  const int64_t whole_bytes = block_bytes(task.format, kGroups);
  alignas(64) float sums[kMaxRows][kFeatures];
  for (int64_t r = 0; r < num_row_tiles * kTileRows; ++r) {
    begin_row(task, r, sums[r]);
  }
  Weights weights;
  const int part_k = product_k(task.format, kTerms);
  configure<Tiles>(part_k < kTileK ? part_k : kTileK);
  for (int64_t b = task.block_begin; b < task.block_end; ++b) {
    const std::byte* const block = task.panel + b * whole_bytes;
    const int64_t rest = task.num_groups - b * kGroups;
    prefetch_lines<false>(block + whole_bytes, whole_bytes);
    const int64_t groups = rest < kGroups ? rest : kGroups;
    task.format.values == QuantizedValues::kE2m1
        ? read_weights<E2m1Vnni, kTerms, kHasZeros>(task.format, block, groups, weights)
        : read_weights<Avx512Vnni, kTerms, kHasZeros>(task.format, block, groups, weights);
    multiply_row_tiles<Tiles, kTerms, kHasZeros>(
        weights, part_k, task.x + b * row_tile_bytes(kTerms), x_stride, num_row_tiles, sums);
  }
  Tiles::release();
  for (int64_t r = 0; r < task.num_rows; ++r) end_row(task, r, sums[r]);
}

template <class Tiles>
void run_with_tiles(const Task& task) {
  if (task.num_terms == 1) return run_terms_with_tiles<Tiles, 1, false>(task);
  task.format.has_zeros ? run_terms_with_tiles<Tiles, 2, true>(task)
                        : run_terms_with_tiles<Tiles, 2, false>(task);
}

}  // namespace
}  // namespace quire::cpu::quantized
