// The part of the BF16 GEMM that is compiled with AVX-512 flags. Its interface has only plain
// pointers, so that no shared inline function is compiled with these flags.
#pragma once

#include <cstdint>

namespace quire::cpu::avx512_bf16 {

inline constexpr int64_t kPanelColumns = 32;  // features per panel
inline constexpr int64_t kMaxTerms = 2;       // BF16 per activation

// Converts num_k activations to out[padded_k / 2][num_terms][2]; those beyond num_k become zeros.
void convert_row(const float* x, int64_t num_k, int64_t padded_k, int num_terms, uint16_t* out);

// Multiplies some rows with the pairs [pair_begin, pair_end) of k of one or two adjacent panels.
struct Task {
  const uint16_t* panels;  // [panel][num_pairs][32][2]
  const uint16_t* x;       // [num_rows][num_pairs][num_terms][2]
  int num_terms;
  int64_t num_pairs;
  int64_t pair_begin;
  int64_t pair_end;
  int64_t num_rows;
  float* out;  // [num_rows, out_stride], at the first panel's first feature
  int64_t out_stride;
  int64_t num_columns;  // features, at most 64; the last panel may have fewer than 32
  const float* bias;    // [num_columns] or null; added when pair_end is the end of k
};
void run(const Task& task);

}  // namespace quire::cpu::avx512_bf16
