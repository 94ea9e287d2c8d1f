// The kernel for one instruction set, which `Isa` describes:
//   F, I: vectors of kLanes floats, and of as many 32-bit integers of 4 bytes each.
//   kVecs: vectors of features at a time; kRows[num_terms - 1]: rows at a time. Their sums stay in
//   registers.
//   keep(sum): a barrier for the compiler, which may not reorder additions across it.
//   kTermsAre16Bits: two terms of an activation are multiplied at once, by dot_16_bits().
//   kSpreadsPrefetches: the prefetches for a group are spread over its quads.
//   kAddsPairs: products of 4 bits with 8 bits are added in lanes of 16 bits over a group of 32, by
//   dot_pairs(). add_pairs() adds the two lanes, each times a multiplier of 16 bits.
//   look_up(table, codes): for each byte of `codes`, below 16, the table's byte.
//   half_e8m0(from): half the numbers of kLanes exponents of E8M0.
// Included by one source file per instruction set, which must not share inline functions.
#pragma once

#include <algorithm>
#include <limits>

#include "cpu/ops/quantized/kernel.h"

namespace quire::cpu::quantized {
namespace {

constexpr int kBytesPerLane = 4;
constexpr int kQuadsPerHalf = 4;  // quads in half a group of 32
constexpr int kMostMultiplier = 255;

// The cache into which weights are prefetched, and the distance in bytes. Only the first set of
// rows prefetches. If the prefetches are spread, a set of several rows prefetches into the L2,
// because the L1 has the block and the activations. On a Zen 4 processor with AVX-512, spreading
// makes one row 25 to 30 % faster with 4 and 6 bits, and 8 rows 25 to 45 % faster. With AVX2, where
// arithmetic is the limit, it makes products of 4 bits 10 % slower.
struct Prefetch {
  bool to_l1;
  int64_t distance;
};
template <class Isa>
constexpr Prefetch prefetch_for(int rows) {
  if (!Isa::kSpreadsPrefetches) return {true, 4096};
  return rows == 1 ? Prefetch{true, 8192} : Prefetch{false, 16384};
}

template <bool kToL1>
inline __attribute__((always_inline)) void prefetch_lines(const std::byte* from,
                                                          int64_t num_bytes) {
  constexpr int64_t kLineBytes = 64;
  for (int64_t at = 0; at < num_bytes; at += kLineBytes) {
    __builtin_prefetch(from + at, 0, kToL1 ? 3 : 2);
  }
}

constexpr int64_t group_bytes(int value_bits) {
  return kGroupK * kFeatures * value_bits / 8;
}

// Numbers of 4 bits (QuantizedValues::kE2m1) become integers by a table: twice the number, plus an
// offset that makes them unsigned. Half of the group's scale multiplies them. An exponent above 228
// may overflow F32 in a block's sum, which then is an infinity or a NaN.
constexpr int kE2m1Offset = 12;
alignas(16) constexpr uint8_t kE2m1Integers[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                   12, 11, 10, 9,  8,  6,  4,  0};

// The bits, as F32, of 2^(exponent - 128), which is subnormal below 2.
constexpr uint32_t half_e8m0_bits(uint32_t exponent) {
  return exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23;
}

// The instruction set for products with kE2m1 numbers, whose integers are too large for sums in 16
// bits.
template <class Base>
struct WithE2m1 : Base {
  static constexpr bool kIsE2m1 = true;
  static constexpr bool kAddsPairs = false;
};

// The values of quad `quad` of a group, as bytes, for vector `vec` of the panel's features.
template <class Isa, int kBits>
inline __attribute__((always_inline)) typename Isa::I unpack(const std::byte* group, int quad,
                                                             int64_t vec) {
  constexpr int64_t kQuadBytes = kFeatures * kBytesPerLane;
  const std::byte* at = group + vec * Isa::kLanes * kBytesPerLane;
  if constexpr (kBits == 8) return Isa::load(at + quad * kQuadBytes);
  const auto both = Isa::load(at + quad % kQuadsPerHalf * kQuadBytes);
  const auto low = Isa::and_bytes(quad < kQuadsPerHalf ? both : Isa::template shift<4>(both), 0x0F);
  if constexpr (Isa::kIsE2m1) return Isa::look_up(kE2m1Integers, low);
  if constexpr (kBits == 4) return low;
  const auto upper =
      Isa::load(at + (kQuadsPerHalf + quad / kQuadsPerHalf) * kQuadBytes);  // of 4 quads
  switch (quad % kQuadsPerHalf) {
    case 0:
      return Isa::or_bytes(low, Isa::and_bytes(Isa::template shift<-4>(upper), 0x30));
    case 1:
      return Isa::or_bytes(low, Isa::and_bytes(Isa::template shift<-2>(upper), 0x30));
    case 2:
      return Isa::or_bytes(low, Isa::and_bytes(upper, 0x30));
    default:
      return Isa::or_bytes(low, Isa::and_bytes(Isa::template shift<2>(upper), 0x30));
  }
}

// The format of the sums of integer products: one vector, or one per term of the activations. The
// lanes have 32 bits, or 16 bits, which end_group() adds in pairs.
template <class Isa, bool kBeyondGguf, int kBits, int kTerms>
struct Sums {
  static constexpr bool kOf16BitTerms = kTerms == 2 && Isa::kTermsAre16Bits;
  static constexpr int kCount = kOf16BitTerms ? 1 : kTerms;
  static constexpr bool kArePairs = Isa::kAddsPairs && kBits == 4 && kTerms == 1 && !kBeyondGguf;
};

// Whether a format has a property that no GGUF type has. The kernels of such formats are compiled
// separately, because their branches and longer groups would slow down the products of other
// formats by 10 %.
constexpr bool is_beyond_gguf(const Format& format) {
  const bool has_common_scales =
      format.scales == Scales::kBlockBytes || format.scales == Scales::kF16;
  return format.group_k > kGroupK || format.has_zeros || !has_common_scales;
}

// The scales, the minimums and the zero points of the groups of one block.
template <class Isa, bool kBeyondGguf>
struct GroupScales {
  using F = typename Isa::F;
  using I = typename Isa::I;

  GroupScales(const Format& format_, const std::byte* block, int64_t groups) : format(format_) {
    const int64_t num_groups = format.num_groups(groups);
    block_scales = block;
    block_minimums = block + kFeatures * 2;
    scales = block;
    if (format.has_block_scales()) scales += kFeatures * (format.has_minimums ? 4 : 2);
    minimums = scales + num_groups * kFeatures * format.scale_bytes();
  }

  F scale(int64_t group, int64_t vec) const {
    const int64_t lane = vec * Isa::kLanes;
    const int64_t at = group * kFeatures + lane;
    if constexpr (Isa::kIsE2m1) return Isa::half_e8m0(scales + at);
    if constexpr (kBeyondGguf) {
      if (format.scales == Scales::kBF16) return Isa::load_bf16(scales + at * 2);
      if (format.scales == Scales::kF32) {
        return Isa::load_f32(reinterpret_cast<const float*>(scales + at * 4));
      }
    }
    if (!format.has_block_scales()) return Isa::load_f16(scales + at * 2);
    return Isa::mul(Isa::load_f16(block_scales + lane * 2), Isa::load_i8(scales + at));
  }
  // Only for formats with zero points.
  I zero(int64_t group, int64_t vec) const {
    return Isa::widen_u8(minimums + group * kFeatures + vec * Isa::kLanes);
  }
  // The value that a group subtracts per unit of activation, given the group's scale.
  F minimum(int64_t group, int64_t vec, F scale) const {
    const int64_t lane = vec * Isa::kLanes;
    const int64_t at = group * kFeatures + lane;
    if constexpr (Isa::kIsE2m1) return Isa::mul(scale, Isa::set1(float{kE2m1Offset}));
    if (kBeyondGguf && format.has_zeros) {
      return Isa::mul(scale, Isa::to_float(zero(group, vec)));
    }
    if (!format.has_minimums) return Isa::mul(scale, Isa::set1(static_cast<float>(format.offset)));
    if (!format.has_block_scales()) return Isa::load_f16(minimums + at * 2);
    return Isa::mul(Isa::load_f16(block_minimums + lane * 2),
                    Isa::to_float(Isa::widen_u8(minimums + at)));
  }

  Format format;
  const std::byte* block_scales;
  const std::byte* block_minimums;
  const std::byte* scales;
  const std::byte* minimums;
};

// The byte offset, in Activations, of the sums for groups of group_k.
constexpr int64_t sums_offset(int group_k) {
  switch (group_k) {
    case 16:
      return offsetof(Activations, sums_of_16);
    case 32:
      return offsetof(Activations, sums_of_32);
    case 64:
      return offsetof(Activations, sums_of_64);
    case 128:
      return offsetof(Activations, sums_of_128);
    default:
      return offsetof(Activations, sums_of_256);
  }
}

// The stages of multiply_block(). They begin and end the sums of groups of group_k in `products`,
// and add these sums to the block's sums. They are inlined, so that all sums stay in registers.
template <class Isa, bool kBeyondGguf, int kBits, int kRows, int kTerms>
struct BlockProduct {
  using F = typename Isa::F;
  using I = typename Isa::I;
  using Sums = quantized::Sums<Isa, kBeyondGguf, kBits, kTerms>;
  static constexpr int kVecs = Isa::kVecs;
  static constexpr Prefetch kPrefetch = prefetch_for<Isa>(kRows);
  using BlockSums = F[kRows][kVecs];
  using Products = I[kRows][Sums::kCount][kVecs];

  static inline __attribute__((always_inline)) void start_group(Products& products) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int t = 0; t < Sums::kCount; ++t) {
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v) products[r][t][v] = Isa::zero();
      }
    }
  }

  // Adds the products of a quad of a group of 32. first_quad: the group's first quad in the block;
  // ahead: the address to prefetch for the group.
  static inline __attribute__((always_inline)) void multiply_quad(
      const std::byte* x, int64_t x_stride, int64_t first_vec, bool fetches, int64_t bytes_per_quad,
      const std::byte* group, const std::byte* ahead, int quad, int64_t first_quad,
      Products& products) {
    // Without this barrier, GCC would add the quads of a group in another order, which needs too
    // many registers.
    asm volatile("" ::: "memory");
    if (Isa::kSpreadsPrefetches && fetches) {
      prefetch_lines<kPrefetch.to_l1>(ahead + quad * bytes_per_quad, bytes_per_quad);
    }
    I weights[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) weights[v] = unpack<Isa, kBits>(group, quad, first_vec + v);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const std::byte* terms =
          x + r * x_stride + sizeof(Activations) + (first_quad + quad) * kTerms * kBytesPerLane;
      if constexpr (Sums::kOf16BitTerms) {
        const I even = Isa::broadcast(terms);
        const I odd = Isa::broadcast(terms + kBytesPerLane);
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v) {
          products[r][0][v] = Isa::dot_16_bits(products[r][0][v], weights[v], even, odd);
          Isa::keep(products[r][0][v]);
        }
      } else {
#pragma GCC unroll 2
        for (int t = 0; t < kTerms; ++t) {
          const I term = Isa::broadcast(terms + t * kBytesPerLane);
#pragma GCC unroll 4
          for (int v = 0; v < kVecs; ++v) {
            I& sum = products[r][t][v];
            if constexpr (Sums::kArePairs) {
              sum = Isa::dot_pairs(sum, weights[v], term);
            } else {
              sum = Isa::template dot<kBits>(sum, weights[v], term);
            }
            Isa::keep(sum);
          }
        }
      }
    }
  }

  // The sum of a row's products in a group, which begins in group `group_32` of 32.
  static inline __attribute__((always_inline)) I product_of(const std::byte* x_row,
                                                            int64_t group_32,
                                                            const I (&sums)[Sums::kCount][kVecs],
                                                            int v) {
    if constexpr (Sums::kArePairs) {
      const auto* const pairs = multipliers(x_row)->pairs[group_32];
      return Isa::add_pairs(sums[0][v], Isa::broadcast(reinterpret_cast<const std::byte*>(pairs)));
    }
    if constexpr (Sums::kCount == 2) {
      return Isa::add(sums[0][v], Isa::template shift<-8>(sums[1][v]));
    }
    return sums[0][v];
  }
  static const Multipliers* multipliers(const std::byte* x_row) {
    return reinterpret_cast<const Multipliers*>(x_row + sizeof(Activations) + kBlockK);
  }

  // Scales the products of a group, and adds them to the block's sums. `group` is its index among
  // the block's groups of weights, and `part` its index among the block's groups of product_k()
  // columns.
  static inline __attribute__((always_inline)) void end_group(
      const Format& format, const GroupScales<Isa, kBeyondGguf>& scales, const std::byte* x,
      int64_t x_stride, int64_t first_vec, int64_t group, int64_t part, int64_t group_32,
      const Products& products, BlockSums& block_sums) {
    const std::byte* const part_sums = x + sums_offset(product_k(format, kTerms));
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const F scale = scales.scale(group, first_vec + v);
      const F minimum = scales.minimum(group, first_vec + v, scale);
      const bool has_zeros = kBeyondGguf && kTerms == 2 && format.has_zeros;
      const I zero = has_zeros ? scales.zero(group, first_vec + v) : Isa::zero();
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const std::byte* const x_row = x + r * x_stride;
        const float sum = reinterpret_cast<const float*>(part_sums + r * x_stride)[part];
        const I product = product_of(x_row, group_32, products[r], v);
        F& block_sum = block_sums[r][v];
        if (has_zeros) {
          const I zeros = Isa::multiply(zero, Isa::set1_int(static_cast<int32_t>(sum)));
          block_sum = Isa::mul_add(scale, Isa::to_float(Isa::subtract(product, zeros)), block_sum);
        } else {
          F number = Isa::to_float(product);
          if constexpr (kTerms == 1 && !Sums::kArePairs) {
            number = Isa::mul(number, Isa::set1(multipliers(x_row)->numbers[group_32]));
          }
          block_sum = Isa::mul_add(scale, number, block_sum);
          block_sum = Isa::neg_mul_add(minimum, Isa::set1(sum), block_sum);
        }
      }
    }
  }

  // Multiplies the block's sums by the scales of the rows, and adds them to sums[row][kFeatures].
  static inline __attribute__((always_inline)) void add_scaled(const std::byte* x, int64_t x_stride,
                                                               int64_t first_vec,
                                                               const BlockSums& block_sums,
                                                               float* sums) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F scale = Isa::set1(reinterpret_cast<const Activations*>(x + r * x_stride)->scale);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) {
        float* sum = sums + r * kFeatures + (first_vec + v) * Isa::kLanes;
        Isa::store(Isa::mul_add(scale, block_sums[r][v], Isa::load_f32(sum)), sum);
      }
    }
  }
};

// sums[row][kFeatures] += rows of one block of activations · the block's weights, for kVecs vectors
// of features, of which first_vec is the first.
template <class Isa, bool kBeyondGguf, int kBits, int kRows, int kTerms>
void multiply_block(const Format& format, const std::byte* block, int64_t groups,
                    const std::byte* x, int64_t x_stride, int64_t first_vec, bool fetches,
                    float* sums) {
  using Product = BlockProduct<Isa, kBeyondGguf, kBits, kRows, kTerms>;
  constexpr Prefetch kPrefetch = Product::kPrefetch;
  const std::byte* values = block + header_bytes(format, groups);
  // The header and values of a group of 32, the unit of prefetching.
  const int64_t bytes_per_group = block_bytes(format, groups) / groups;
  const int64_t bytes_per_quad = (bytes_per_group + 7) / (2 * kQuadsPerHalf);
  const bool has_halves = format.group_k == kGroupK / 2;
  // The number of groups of 32 that share a scale, and the number of groups of 32 per sum of
  // products.
  const int64_t scale_groups = kBeyondGguf && !has_halves ? format.group_k / kGroupK : 1;
  const int64_t inner_groups = kTerms == 1 ? 1 : scale_groups;
  const GroupScales<Isa, kBeyondGguf> scales(format, block, groups);
  typename Product::BlockSums block_sums;
  typename Product::Products products;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Isa::kVecs; ++v) block_sums[r][v] = Isa::set1(0.0F);
  }
  for (int64_t first = 0; first < groups; first += inner_groups) {
    const bool is_cut = kBeyondGguf && first + inner_groups > groups;
    const int64_t end = is_cut ? groups : first + inner_groups;
    Product::start_group(products);
    for (int64_t g = first; g < end; ++g) {
      const std::byte* group = values + g * group_bytes(kBits);
      const std::byte* ahead = block + g * bytes_per_group + kPrefetch.distance;
      if (!Isa::kSpreadsPrefetches && fetches) {
        prefetch_lines<kPrefetch.to_l1>(ahead, bytes_per_group);
      }
      const int64_t first_quad = g * 2 * kQuadsPerHalf;
#pragma GCC unroll 4
      for (int quad = 0; quad < kQuadsPerHalf; ++quad) {
        Product::multiply_quad(x, x_stride, first_vec, fetches, bytes_per_quad, group, ahead, quad,
                               first_quad, products);
      }
      if (has_halves) {
        Product::end_group(format, scales, x, x_stride, first_vec, 2 * g, 2 * g, g, products,
                           block_sums);
        Product::start_group(products);
      }
#pragma GCC unroll 4
      for (int quad = kQuadsPerHalf; quad < 2 * kQuadsPerHalf; ++quad) {
        Product::multiply_quad(x, x_stride, first_vec, fetches, bytes_per_quad, group, ahead, quad,
                               first_quad, products);
      }
    }
    const int64_t group = has_halves ? 2 * first + 1 : first / scale_groups;
    const int64_t part = has_halves ? group : first / inner_groups;
    Product::end_group(format, scales, x, x_stride, first_vec, group, part, first, products,
                       block_sums);
  }
  Product::add_scaled(x, x_stride, first_vec, block_sums, sums);
}

// Loads the sums that earlier blocks have added for the columns of a row. Rows beyond the last are
// zeros.
inline void begin_row(const Task& task, int64_t row, float* sums) {
  const bool has_sums = task.block_begin > 0 && row < task.num_rows;
  const float* const from = task.out + row * task.out_stride;
  const int64_t num_columns = has_sums ? task.num_columns : 0;
  for (int64_t i = 0; i < num_columns; ++i) sums[i] = from[i];
  for (int64_t i = num_columns; i < kFeatures; ++i) sums[i] = 0.0F;
}

inline void end_row(const Task& task, int64_t row, const float* sums) {
  float* const out = task.out + row * task.out_stride;
  const bool has_bias = task.bias != nullptr && task.block_end == task.num_blocks();
  for (int64_t i = 0; i < task.num_columns; ++i) {
    out[i] = has_bias ? sums[i] + task.bias[i] : sums[i];
  }
}

// Multiplies rows [row, row + kRows) of the task by a block.
template <class Isa, bool kBeyondGguf, int kBits, int kRows, int kTerms>
void multiply_rows(const Task& task, int64_t b, int64_t row, bool fetches, float* sums) {
  constexpr int64_t kGroups = kBlockK / kGroupK;
  const int64_t x_stride = task.num_blocks() * activation_bytes(kTerms);
  const std::byte* block = task.panel + b * block_bytes(task.format, kGroups);
  const std::byte* x = task.x + row * x_stride + b * activation_bytes(kTerms);
  const int64_t rest = task.num_groups - b * kGroups;
  const int64_t groups = rest < kGroups ? rest : kGroups;
  for (int64_t vec = 0; vec < kFeatures / Isa::kLanes; vec += Isa::kVecs) {
    multiply_block<Isa, kBeyondGguf, kBits, kRows, kTerms>(task.format, block, groups, x, x_stride,
                                                           vec, fetches, sums + row * kFeatures);
  }
}

// Calls multiply_rows() with `rows`, 1 to kRows, as a constant.
template <class Isa, bool kBeyondGguf, int kBits, int kRows, int kTerms>
void multiply_some_rows(const Task& task, int64_t b, int64_t row, int64_t rows, bool fetches,
                        float* sums) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return multiply_some_rows<Isa, kBeyondGguf, kBits, kRows - 1, kTerms>(task, b, row, rows,
                                                                            fetches, sums);
    }
  }
  multiply_rows<Isa, kBeyondGguf, kBits, kRows, kTerms>(task, b, row, fetches, sums);
}

// Multiplies all rows, in sets of nearly equal size. A block of weights stays in the L1 until all
// sets have used it.
template <class Isa, bool kBeyondGguf, int kBits, int kTerms>
void multiply_all(const Task& task) {
  constexpr int kRows = Isa::kRows[kTerms - 1];
  alignas(64) float sums[kMaxRows * kFeatures];
  for (int64_t r = 0; r < task.num_rows; ++r) begin_row(task, r, sums + r * kFeatures);
  for (int64_t b = task.block_begin; b < task.block_end; ++b) {
    int64_t num_sets = (task.num_rows + kRows - 1) / kRows;
    for (int64_t row = 0; row < task.num_rows; --num_sets) {
      const int64_t rows = (task.num_rows - row + num_sets - 1) / num_sets;
      multiply_some_rows<Isa, kBeyondGguf, kBits, kRows, kTerms>(task, b, row, rows, row == 0,
                                                                 sums);
      row += rows;
    }
  }
  for (int64_t r = 0; r < task.num_rows; ++r) end_row(task, r, sums + r * kFeatures);
}

template <class Isa, int kTerms>
void run_terms(const Task& task) {
  if (task.format.values == QuantizedValues::kE2m1) {
    return multiply_all<WithE2m1<Isa>, false, 4, kTerms>(task);
  }
  if (is_beyond_gguf(task.format)) {
    return task.format.value_bits == 4 ? multiply_all<Isa, true, 4, kTerms>(task)
                                       : multiply_all<Isa, true, 8, kTerms>(task);
  }
  switch (task.format.value_bits) {
    case 4:
      return multiply_all<Isa, false, 4, kTerms>(task);
    case 6:
      return multiply_all<Isa, false, 6, kTerms>(task);
    default:
      return multiply_all<Isa, false, 8, kTerms>(task);
  }
}

template <class Isa>
void run(const Task& task) {
  task.num_terms == 1 ? run_terms<Isa, 1>(task) : run_terms<Isa, 2>(task);
}

// The largest magnitude of `count` numbers; an infinity or a NaN is larger than all others.
inline float largest_magnitude(const float* values, int64_t count) {
  uint32_t most_bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    __builtin_memcpy(&bits, values + i, sizeof(bits));
    bits &= 0x7FFFFFFFU;
    most_bits = most_bits < bits ? bits : most_bits;
  }
  float most = 0;
  __builtin_memcpy(&most, &most_bits, sizeof(most));
  return most;
}

// Returns the multiplier of 32 activations: the smallest with which the largest activation fits 8
// bits.
inline int32_t multiplier_of(const float* values, float most_of_block) {
  const float share = largest_magnitude(values, kGroupK) * (kMostMultiplier / most_of_block);
  const auto whole = static_cast<int32_t>(share);
  const int32_t multiplier = whole + (static_cast<float>(whole) < share ? 1 : 0);
  return multiplier < 1 ? 1 : multiplier < kMostMultiplier ? multiplier : kMostMultiplier;
}

// Writes a block of `count` activations, followed by zeros. The compiler vectorizes the loops.
template <class Isa, int kTerms>
void quantize_block(const float* x, int64_t count, std::byte* out) {
  constexpr float kTiny = 0x1p-100F;
  constexpr float kMost = 127.0F * (kTerms == 1 ? kMostMultiplier : 256);
  // Adding this number to one of at most 22 bits, and subtracting it again, rounds to an integer.
  constexpr float kRounder = 0x1.8p23F;
  float values[kBlockK];
  for (int64_t i = 0; i < kBlockK; ++i) values[i] = 0.0F;
  for (int64_t i = 0; i < count; ++i) values[i] = x[i];
  const float most = largest_magnitude(values, kBlockK);
  const bool is_finite = most <= std::numeric_limits<float>::max();
  const bool is_zero = most < kTiny;
  const float inverse = !is_finite || is_zero ? 0.0F : kMost / most;
  auto* const header = reinterpret_cast<Activations*>(out);
  header->scale = !is_finite ? __builtin_nanf("") : is_zero ? 0.0F : most / kMost;
  int32_t q[kBlockK];
  for (int64_t g = 0; g < kBlockK / kGroupK; ++g) {
    const float* const group = values + g * kGroupK;
    int32_t multiplier = 1;
    if constexpr (kTerms == 1) {
      if (inverse > 0) multiplier = multiplier_of(group, most);
      auto* const to = reinterpret_cast<Multipliers*>(out + sizeof(Activations) + kBlockK);
      to->numbers[g] = static_cast<float>(multiplier);
      to->pairs[g][0] = to->pairs[g][1] = static_cast<int16_t>(multiplier);
    }
    const float group_inverse = inverse / static_cast<float>(multiplier);
    for (int64_t i = 0; i < kGroupK; ++i) {
      const float value = is_finite ? group[i] : 0.0F;
      const float rounded = (value * group_inverse + kRounder) - kRounder;
      q[g * kGroupK + i] = static_cast<int32_t>(rounded);
    }
    for (int64_t half = 0; half < 2; ++half) {
      int32_t sum = 0;
      for (int64_t i = 0; i < 16; ++i) sum += q[g * kGroupK + half * 16 + i];
      header->sums_of_16[2 * g + half] = static_cast<float>(sum * multiplier);
    }
  }
  const auto add_pairs = [](const float* from, int64_t num_pairs, float* to) {
    for (int64_t s = 0; s < num_pairs; ++s) to[s] = from[2 * s] + from[2 * s + 1];
  };
  add_pairs(header->sums_of_16, kBlockK / 32, header->sums_of_32);
  add_pairs(header->sums_of_32, kBlockK / 64, header->sums_of_64);
  add_pairs(header->sums_of_64, kBlockK / 128, header->sums_of_128);
  add_pairs(header->sums_of_128, 1, header->sums_of_256);
  if constexpr (kTerms == 2 && Isa::kTermsAre16Bits) {
    auto* pairs = reinterpret_cast<int16_t*>(out + sizeof(Activations));
    for (int64_t quad = 0; quad < kBlockK; quad += 4) {
      pairs[quad] = static_cast<int16_t>(q[quad]);
      pairs[quad + 1] = static_cast<int16_t>(q[quad + 2]);
      pairs[quad + 2] = static_cast<int16_t>(q[quad + 1]);
      pairs[quad + 3] = static_cast<int16_t>(q[quad + 3]);
    }
    return;
  }
  auto* bytes = reinterpret_cast<int8_t*>(out + sizeof(Activations));
  for (int64_t quad = 0; quad < kBlockK / 4; ++quad) {
    for (int64_t i = 0; i < 4; ++i) {
      const int32_t value = q[quad * 4 + i];
      const int32_t upper = kTerms == 1 ? 0 : (value + 128) >> 8;
      bytes[quad * 4 * kTerms + i] = static_cast<int8_t>(value - upper * 256);
      if (kTerms == 2) bytes[quad * 4 * kTerms + 4 + i] = static_cast<int8_t>(upper);
    }
  }
}

template <class Isa>
void quantize_row(const float* x, int64_t num_k, int num_terms, int64_t row, int64_t /*num_rows*/,
                  std::byte* out) {
  out += row * ((num_k + kBlockK - 1) / kBlockK) * activation_bytes(num_terms);
  for (int64_t k = 0; k < num_k; k += kBlockK) {
    const int64_t count = num_k - k < kBlockK ? num_k - k : kBlockK;
    num_terms == 1 ? quantize_block<Isa, 1>(x + k, count, out)
                   : quantize_block<Isa, 2>(x + k, count, out);
    out += activation_bytes(num_terms);
  }
}

}  // namespace
}  // namespace quire::cpu::quantized
