// The part of the BF16 GEMM that is compiled with AVX-512 flags. Its interface has only plain
// pointers, so that no shared inline function is compiled with these flags.
#pragma once

#include <cstdint>

namespace quire::cpu::avx512_bf16 {

inline constexpr int64_t kPanelColumns = 32;  // features per panel
inline constexpr int64_t kTaskPanels = 2;
inline constexpr int64_t kTaskColumns = kTaskPanels * kPanelColumns;
inline constexpr int64_t kMaxTerms = 2;  // BF16 per activation

// The maximum numbers of rows per task.
inline constexpr int64_t kMaxRowsTwoPanels = 6;
inline constexpr int64_t kMaxRowsOnePanel = 12;

// Rounds or splits `count` activations to out[pair][num_terms][2]. If `count` is odd, the last
// activation is paired with a zero.
void convert(const float* x, int64_t count, int num_terms, void* out);

// Multiplies a batch of rows by some pairs of k of one or two adjacent panels.
struct Task {
  const uint16_t* panels;  // [num_panels][num_pairs][32][2]
  int64_t panel_stride;    // elements from one panel to the next
  int64_t num_panels;      // 1 or 2
  bool panels_are_cached;  // another task has just read them, so they are not prefetched into the
                           // L1
  const uint16_t* x;       // [num_pairs][num_rows][num_terms][2]
  int num_terms;
  int64_t num_pairs;
  int64_t num_rows;     // at most the maximum for num_panels
  float* sums;          // [num_rows, kTaskColumns]
  bool is_first_block;  // sets the sums instead of adding to them
  // Weights to prefetch into the L2: num_next pairs of num_panels panels, with the same stride.
  const uint16_t* next;
  int64_t num_next;
};
void run(const Task& task);

}  // namespace quire::cpu::avx512_bf16
