// The sums of a task's rows stay in registers while the loop runs over k. There are 6 rows by 4
// vectors of two panels, or 12 rows by 2 vectors of one panel. Either needs 24 of the 32 registers,
// and 10 or 14 loads per 24 multiplications.
#include "cpu/ops/avx512_bf16/kernel.h"

#include <immintrin.h>

#include <cstring>

namespace quire::cpu::avx512_bf16 {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kPairElements = kPanelColumns * 2;  // of a panel

// The distance between a prefetch into the L1 and the use of the line, in bytes of weights.
constexpr int64_t kAheadBytes = 4096;

// The weights that a task prefetches, line by line between its steps, so that the memory and the
// arithmetic units work at the same time.
class Prefetcher {
 public:
  explicit Prefetcher(const Task& task)
      : at_(task.next),
        end_(task.next + task.num_next * kPairElements),
        panel_stride_(task.panel_stride),
        num_panels_(task.num_panels),
        lines_per_step_((task.num_next * kPairElements / kLine + task.num_pairs - 1) /
                        task.num_pairs) {}

  inline void fetch_lines() {
    for (int64_t i = 0; i < lines_per_step_ && at_ < end_; ++i, at_ += kLine) {
      for (int64_t p = 0; p < num_panels_; ++p) {
        _mm_prefetch(reinterpret_cast<const char*>(at_ + p * panel_stride_), _MM_HINT_T1);
      }
    }
  }

 private:
  static constexpr int64_t kLine = 32;  // elements

  const uint16_t* at_;
  const uint16_t* end_;
  int64_t panel_stride_;
  int64_t num_panels_;
  int64_t lines_per_step_;
};

// kVecs: vectors of features, from two panels or from one.
template <int kRows, int kVecs, int kTerms, bool kAreCached>
void multiply(const Task& task) {
  __m512 sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      sums[r][v] = task.is_first_block ? _mm512_setzero_ps()
                                       : _mm512_loadu_ps(task.sums + r * kTaskColumns + v * kLanes);
    }
  }
  constexpr int64_t kAhead = kAheadBytes / kVecs;  // elements of a panel
  const uint16_t* w = task.panels;
  const uint16_t* x = task.x;
  Prefetcher prefetcher(task);
  for (int64_t pair = 0; pair < task.num_pairs; ++pair) {
    prefetcher.fetch_lines();
    __m512bh weights[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const uint16_t* at = w + v / 2 * task.panel_stride + v % 2 * kLanes * 2;
      if constexpr (!kAreCached) {
        _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
      }
      weights[v] = (__m512bh)_mm512_load_si512(at);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int term = 0; term < kTerms; ++term) {
        int32_t both = 0;
        std::memcpy(&both, x + (r * kTerms + term) * 2, sizeof(both));
        const auto x_pair = (__m512bh)_mm512_set1_epi32(both);
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v) {
          sums[r][v] = _mm512_dpbf16_ps(sums[r][v], weights[v], x_pair);
        }
      }
    }
    w += kPairElements;
    x += kRows * kTerms * 2;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      _mm512_storeu_ps(task.sums + r * kTaskColumns + v * kLanes, sums[r][v]);
    }
  }
}

// Calls multiply() with the task's number of rows, 1 to kRows, as a constant.
template <int kRows, int kVecs, int kTerms>
void multiply_rows(const Task& task) {
  if constexpr (kRows > 1) {
    if (task.num_rows < kRows) return multiply_rows<kRows - 1, kVecs, kTerms>(task);
  }
  if (task.panels_are_cached) {
    multiply<kRows, kVecs, kTerms, true>(task);
  } else {
    multiply<kRows, kVecs, kTerms, false>(task);
  }
}

template <int kTerms>
void run_terms(const Task& task) {
  if (task.num_panels == 2) {
    multiply_rows<kMaxRowsTwoPanels, 4, kTerms>(task);
  } else {
    multiply_rows<kMaxRowsOnePanel, 2, kTerms>(task);
  }
}

}  // namespace

void convert(const float* x, int64_t count, int num_terms, void* pairs_out) {
  auto* out = static_cast<uint16_t*>(pairs_out);
  for (int64_t k = 0; k < count; k += kLanes) {
    const int64_t num_lanes = count - k < kLanes ? count - k : kLanes;
    const auto numbers = static_cast<__mmask16>((1U << num_lanes) - 1);
    const auto pairs = static_cast<__mmask16>((1U << (num_lanes + 1) / 2 * 2) - 1);
    const __m512 values = _mm512_maskz_loadu_ps(numbers, x + k);
    const __m256i term0 = (__m256i)_mm512_cvtneps_pbh(values);
    if (num_terms == 1) {
      _mm256_mask_storeu_epi16(out + k, pairs, term0);
      continue;
    }
    const __m512 upper = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(term0), 16));
    const __m256i term1 = (__m256i)_mm512_cvtneps_pbh(_mm512_sub_ps(values, upper));
    // Interleaves pairs: 32-bit lanes of term0 and term1 alternate.
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(term0), term1, 1);
    const __m512i order = _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
    _mm512_mask_storeu_epi32(out + 2 * k, pairs, _mm512_permutexvar_epi32(order, both));
  }
}

void run(const Task& task) {
  task.num_terms == 1 ? run_terms<1>(task) : run_terms<2>(task);
}

}  // namespace quire::cpu::avx512_bf16
