// The part of the GEMM with quantized weights that is compiled once per instruction set from one
// source. Its interface has only plain data, so that no shared inline function is compiled with an
// instruction set's flags. All instruction sets compute the same bits.
//
// Activations. The kBlockK activations of a block are integers times the block's scale. With two
// terms, an integer has 16 bits: x = scale * (256 q1 + q0), with a rounding error of up to about
// 2^-16 of the block's largest activation. With one term, an integer has 8 bits, and 32 activations
// share a multiplier m of 8 bits: x = scale * m * q0. The multiplier acts as a scale per 32
// activations, but sums stay integers. A block whose activations are all below 2^-100 is treated as
// zeros. A block with an infinity or a NaN is treated as NaN.
//
// Numerics. The integer products of a group of weights are summed exactly. A block's sum is the
// sum, over its groups in ascending order, of group scale * products - group minimum * sum of q, in
// F32. A row's sum is the sum over its blocks of scale * block's sum, plus the bias. The order does
// not depend on the number of rows. With two terms, a group's zero point times the sum of q is
// subtracted from the products as an integer: 256 products of 16 bits by 8 bits fit 32 bits. With
// one term, a longer group is treated as several groups of 32, and a zero point as a minimum. The
// sums of products times the multiplier are exact in F32 for weights of up to 4 bits; for other
// weights they are rounded to F32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/quantized_format.h"

namespace quire::cpu::quantized {

inline constexpr int64_t kFeatures = kPanelRows;  // features per panel
inline constexpr int64_t kBlockK = 256;
inline constexpr int64_t kGroupK = 32;  // the smallest unit of a row; a row may end within a block
inline constexpr int64_t kMaxRows = 256;  // of a task

using Format = QuantizedFormat;
using Scales = QuantizedScales;

// A panel consists of its blocks in ascending order. A block has `groups` groups of 32: 8, or fewer
// in the last block. It consists of its header (ops/quantized_format.h), then:
//   values[groups], each group 32 elements of 32 features: 4 k of one feature are adjacent.
//     8 bits: [8 quads][32 features][4 k].
//     4 bits: [4][32][4]; the lower halves are quads 0 to 3, the upper halves are quads 4 to 7.
//     6 bits: the lower 4 bits as above, then the upper 2 bits [2][32][4]; the bits 2j and 2j + 1
//             of byte h are those of quad 4h + j.
constexpr int64_t header_bytes(const Format& format, int64_t groups) {
  return quantized_header(format, groups).num_bytes;
}
constexpr int64_t value_bytes(const Format& format, int64_t groups) {
  return groups * kGroupK * kFeatures * format.value_bits / 8;
}
constexpr int64_t block_bytes(const Format& format, int64_t groups) {
  return header_bytes(format, groups) + value_bytes(format, groups);
}
constexpr int64_t row_bytes(const Format& format, int64_t num_groups) {  // of a panel
  constexpr int64_t kGroups = kBlockK / kGroupK;
  const int64_t rest = num_groups % kGroups;
  return num_groups / kGroups * block_bytes(format, kGroups) +
         (rest > 0 ? block_bytes(format, rest) : 0);
}

// The number of columns per sum of integer products. These columns share a scale of weights and,
// with one term, a multiplier of activations.
constexpr int product_k(const Format& format, int num_terms) {
  return num_terms == 1 && format.group_k > kGroupK ? int{kGroupK} : format.group_k;
}

// The header of a block of a row of activations. After it come the quads of k, as int32_t[kBlockK /
// 4][num_terms], and with one term the Multipliers. The bytes of a quad are q0 of 4 adjacent k,
// then q1. If a kernel multiplies both terms at once, the first integer of a quad has 256 q1 + q0
// of k and k + 2, and the second of k + 1 and k + 3. The AMX kernel stores the parts of 16 rows in
// another order (amx_int8-inl.h), with the same size.
struct alignas(64) Activations {
  float scale;
  // The sums of the integers of 16, 32, 64, 128 and 256 activations. With one term, the integers
  // are first multiplied by their multipliers. All sums are exact.
  float sums_of_16[kBlockK / 16];
  float sums_of_32[kBlockK / 32];
  float sums_of_64[kBlockK / 64];
  float sums_of_128[kBlockK / 128];
  float sums_of_256[1];
};
// The multipliers of the groups of 32 activations, in two forms.
struct alignas(64) Multipliers {
  float numbers[kBlockK / kGroupK];
  int16_t pairs[kBlockK / kGroupK][2];  // the same number twice
};
constexpr int64_t activation_bytes(int num_terms) {
  return static_cast<int64_t>(sizeof(Activations)) + kBlockK * num_terms +
         (num_terms == 1 ? static_cast<int64_t>(sizeof(Multipliers)) : 0);
}

// Multiplies some rows by blocks [block_begin, block_end) of a panel. Unless block_begin is 0, adds
// to the sums in `out`, which gives the same bits as one task.
struct Task {
  Format format;
  const std::byte* panel;
  int64_t num_groups;  // of 32 k, in a row
  int64_t block_begin;
  int64_t block_end;
  const std::byte* x;  // the output of quantize_row()
  int num_terms;       // 1 or 2
  int64_t num_rows;    // at most kMaxRows
  float* out;          // [num_rows, out_stride], at the panel's first feature
  int64_t out_stride;
  int64_t num_columns;  // features of the panel, at most 32
  const float* bias;    // [num_columns] or null; added with the last block

  constexpr int64_t num_blocks() const { return (num_groups * kGroupK + kBlockK - 1) / kBlockK; }
};

struct Kernel {
  // Writes the blocks of row `row` of `num_rows` rows of num_k activations. `out` points to row 0:
  // [num_rows][number of blocks] of activation_bytes.
  void (*quantize_row)(const float* x, int64_t num_k, int num_terms, int64_t row, int64_t num_rows,
                       std::byte* out);
  void (*run)(const Task& task);
  // With fewer rows than this, the next kernel is faster. Null: the kernel supports any number of
  // rows.
  int64_t (*min_rows)(const Format& format, int num_terms) = nullptr;
  // Whether the kernel and the next ones are faster with one term than with two. Null: always.
  bool (*gains_by_one_term)(const Format& format) = nullptr;
  // Whether the kernel reads activations so fast that they should stay in L2 while panels are
  // processed.
  bool needs_x_in_l2 = false;
};

extern const Kernel kPlain;
// Each is defined only for the processor family that has it.
extern const Kernel kAvx2;
extern const Kernel kAvxVnni;
extern const Kernel kAvx512Vnni;
extern const Kernel kAmxInt8;

}  // namespace quire::cpu::quantized
