// The sums of a group of rows stay in registers while k passes. Weights are read once per group:
// groups of 6 rows with two panels, or of 12 rows with one, use most of the 32 registers and load
// fewer operands than they multiply. The first group of a block of k finds its weights in cache,
// because all groups of the block before have fetched them line by line between their steps, so
// that the memory and the arithmetic units work at the same time.
#include "cpu/ops/avx512_bf16/kernel.h"

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace quire::cpu::avx512_bf16 {
namespace {

constexpr int64_t kLanes = 16;
constexpr int kWideRows = 6;     // rows per group with two panels
constexpr int kNarrowRows = 12;  // rows per group with one panel

// How far ahead of their use weights are prefetched.
constexpr int64_t kPrefetchBytes = 2048;

__mmask16 columns_mask(int64_t count) {
  return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : (1U << std::max<int64_t>(count, 0)) - 1);
}

// The weights of the block of k after the task's, in each of its panels.
class NextBlock {
 public:
  // `num_groups` of rows share the work.
  NextBlock(const Task& task, int64_t num_groups)
      : at_(reinterpret_cast<const std::byte*>(task.panels) + task.pair_end * kPairBytes),
        panel_bytes_(task.num_pairs * kPairBytes),
        num_panels_((task.num_columns + kPanelColumns - 1) / kPanelColumns) {
    const int64_t num_pairs = task.pair_end - task.pair_begin;
    const int64_t next_pairs = std::min(num_pairs, task.num_pairs - task.pair_end);
    end_ = at_ + next_pairs * kPairBytes;
    const int64_t num_lines = next_pairs * (kPairBytes / kLineBytes);
    const int64_t num_steps = num_pairs * num_groups;
    lines_per_step_ = (num_lines + num_steps - 1) / num_steps;
  }

  inline void fetch_lines() {
    for (int64_t i = 0; i < lines_per_step_ && at_ < end_; ++i, at_ += kLineBytes) {
      for (int64_t p = 0; p < num_panels_; ++p) {
        _mm_prefetch(reinterpret_cast<const char*>(at_ + p * panel_bytes_), _MM_HINT_T1);
      }
    }
  }

 private:
  static constexpr int64_t kPairBytes = kPanelColumns * 2 * 2;  // of a panel
  static constexpr int64_t kLineBytes = 64;

  const std::byte* at_;
  const std::byte* end_ = nullptr;
  int64_t panel_bytes_;
  int64_t num_panels_;
  int64_t lines_per_step_ = 0;
};

// Rows [row, row + kRows) with kVecs vectors of features from the task's vector first_vec on.
template <int kRows, int kVecs, int kTerms>
void multiply(const Task& task, int64_t row, int64_t first_vec, NextBlock& next) {
  __m512 sums[kRows][kVecs];
  __mmask16 masks[kVecs];
  float* out = task.out + row * task.out_stride + first_vec * kLanes;
  for (int v = 0; v < kVecs; ++v) {
    masks[v] = columns_mask(task.num_columns - (first_vec + v) * kLanes);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      sums[r][v] = task.pair_begin == 0
                       ? _mm512_setzero_ps()
                       : _mm512_maskz_loadu_ps(masks[v], out + r * task.out_stride + v * kLanes);
    }
  }
  const int64_t panel_elements = task.num_pairs * kPanelColumns * 2;
  const int64_t row_elements = task.num_pairs * kTerms * 2;
  const uint16_t* w =
      task.panels + first_vec / 2 * panel_elements + task.pair_begin * kPanelColumns * 2;
  const uint16_t* x = task.x + row * row_elements + task.pair_begin * kTerms * 2;
  NextBlock fetch = next;
  for (int64_t pair = task.pair_begin; pair < task.pair_end; ++pair) {
    fetch.fetch_lines();
    __m512bh weights[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const uint16_t* at = w + v / 2 * panel_elements + v % 2 * kLanes * 2;
      _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetchBytes, _MM_HINT_T0);
      weights[v] = (__m512bh)_mm512_load_si512(at);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int term = 0; term < kTerms; ++term) {
        int32_t both = 0;
        std::memcpy(&both, x + r * row_elements + term * 2, sizeof(both));
        const auto x_pair = (__m512bh)_mm512_set1_epi32(both);
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v) {
          sums[r][v] = _mm512_dpbf16_ps(sums[r][v], weights[v], x_pair);
        }
      }
    }
    w += kPanelColumns * 2;
    x += kTerms * 2;
  }
  next = fetch;
  const bool adds_bias = task.bias != nullptr && task.pair_end == task.num_pairs;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      __m512 sum = sums[r][v];
      if (adds_bias) {
        const float* bias = task.bias + (first_vec + v) * kLanes;
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(masks[v], bias));
      }
      _mm512_mask_storeu_ps(out + r * task.out_stride + v * kLanes, masks[v], sum);
    }
  }
}

// Calls multiply() for `rows`, known only at run time, from 1 to kRows.
template <int kRows, int kVecs, int kTerms>
void multiply_group(const Task& task, int64_t row, int64_t rows, int64_t first_vec,
                    NextBlock& next) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return multiply_group<kRows - 1, kVecs, kTerms>(task, row, rows, first_vec, next);
    }
  }
  multiply<kRows, kVecs, kTerms>(task, row, first_vec, next);
}

// All rows, in groups of nearly equal size.
template <int kRows, int kVecs, int kTerms>
void multiply_rows(const Task& task, int64_t first_vec) {
  int64_t num_groups = (task.num_rows + kRows - 1) / kRows;
  NextBlock next(task, num_groups);
  for (int64_t row = 0; row < task.num_rows; --num_groups) {
    const int64_t rows = (task.num_rows - row + num_groups - 1) / num_groups;
    multiply_group<kRows, kVecs, kTerms>(task, row, rows, first_vec, next);
    row += rows;
  }
}

template <int kTerms>
void run_terms(const Task& task) {
  const bool has_two_panels = task.num_columns > kPanelColumns;
  const bool fits_one_group = task.num_rows > kWideRows && task.num_rows <= kNarrowRows;
  if (has_two_panels && !fits_one_group) return multiply_rows<kWideRows, 4, kTerms>(task, 0);
  multiply_rows<kNarrowRows, 2, kTerms>(task, 0);
  if (has_two_panels) multiply_rows<kNarrowRows, 2, kTerms>(task, 2);
}

}  // namespace

void convert_row(const float* x, int64_t num_k, int64_t padded_k, int num_terms, uint16_t* out) {
  for (int64_t k = 0; k < padded_k; k += kLanes) {
    const __m512 values = _mm512_maskz_loadu_ps(columns_mask(num_k - k), x + k);
    const __m256i term0 = (__m256i)_mm512_cvtneps_pbh(values);
    if (num_terms == 1) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + k), term0);
      continue;
    }
    const __m512 upper = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(term0), 16));
    const __m256i term1 = (__m256i)_mm512_cvtneps_pbh(_mm512_sub_ps(values, upper));
    // Interleaves pairs: 32-bit lanes of term0 and term1 in turn.
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(term0), term1, 1);
    const __m512i order = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    _mm512_storeu_si512(out + 2 * k, _mm512_permutexvar_epi32(order, both));
  }
}

void run(const Task& task) {
  task.num_terms == 1 ? run_terms<1>(task) : run_terms<2>(task);
}

}  // namespace quire::cpu::avx512_bf16
