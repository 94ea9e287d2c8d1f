// The part of the AMX GEMM that is compiled with separate flags. Its interface has only plain
// pointers, so that no shared inline function is compiled with these flags.
#pragma once

#include <bit>
#include <cstdint>

namespace quire::cpu {

// The encoding of F16 weights in PanelLayout::kPairs: 1 sign, 5 exponent and 10 significand bits,
// as in F16, but with a different exponent bias. So every F16 below 2^5 becomes a normal number or
// zero without loss. The AMX kernel splits such numbers into two BF16 with little work.
inline constexpr int kF16PairBias = 27;            // the bias of F16 itself is 15
inline constexpr uint16_t kF16PairLimit = 0x5000;  // 32: magnitudes of 32 or more do not fit

inline float f16_pair_to_f32(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude == 0) return std::bit_cast<float>(sign);
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127U - kF16PairBias) << 23)));
}

namespace amx {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileK = 32;
inline constexpr int64_t kTileElements = kTileRows * kTileK;  // BF16, 1 KiB
inline constexpr int64_t kPanelColumns = 2 * kTileRows;
inline constexpr int kMaxTerms = 2;                   // BF16 terms per number
inline constexpr int64_t kGroupRows = 2 * kTileRows;  // rows per weight in registers

// Converts one row of x (num_k elements) to num_terms BF16 each, in row `row` of
// x_tiles[row tile][num_k_tiles][num_terms][16][32]; k beyond num_k becomes zeros.
void convert_row(const float* x, int64_t num_k, int64_t num_k_tiles, int num_terms, int64_t row,
                 uint16_t* x_tiles);

// Converts F16 in place to F16 pairs. Returns false if a value does not fit. `values` must be
// 64-byte aligned, and `count` a multiple of 32.
bool encode_f16(uint16_t* values, int64_t count);

// Multiplies some rows with k tiles [k_begin, k_end) of adjacent panels of 32 features.
struct Task {
  const uint16_t* panels;   // [panel][num_k_tiles * 16][32][2]
  bool is_f16;              // F16 in pairs; otherwise BF16
  const uint16_t* x_tiles;  // the output of convert_row()
  int num_terms;            // per activation: 1 or 2 with BF16 weights, 2 with F16 weights
  int64_t num_k_tiles;
  int64_t k_begin;
  int64_t k_end;
  int64_t num_rows;
  float* out;  // [num_rows, out_stride], at the first panel's first feature
  int64_t out_stride;
  int64_t num_columns;  // features; the last panel may have fewer than 32
  const float* bias;    // [num_columns] or null; added when k_end is the end of k
  // [k_end - k_begin][2][kMaxTerms][512], for F16. Not needed if at most kGroupRows rows use all k
  // tiles.
  uint16_t* weights_scratch;
};

struct Kernel {
  void (*run)(const Task& task);
  // Releases the tile registers, so that a context switch does not have to save them.
  void (*release_tiles)();
};
extern const Kernel kKernel;

}  // namespace amx
}  // namespace quire::cpu
