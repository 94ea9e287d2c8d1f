// AMX tiles: 0 to 3 hold the sums of up to 32 rows by 32 features, 4 and 5 the rows' activations,
// 6 and 7 the features' weights. See gemm_amx.h for the numerics.
#include "cpu/ops/amx/kernel.h"

#include <immintrin.h>

#include "cpu/ops/amx/tiles.h"

namespace quire::cpu::amx {
namespace {

constexpr int64_t kPanelTileElements = 2 * kTileElements;  // 32 k of a panel

// Splits 32 F16, stored times kF16Scale, exactly into two BF16: the upper 8 bits of the
// significand, and the lower 3. The first is F16's own bits with the exponent's bias changed; the
// second has the same sign and an exponent that a table of the eight values tells. No F16 is
// subnormal here.
inline void split_f16(__m512i w, __m512i* w0, __m512i* w1) {
  const __m512i narrowed =
      _mm512_and_si512(_mm512_srai_epi16(w, 3), _mm512_set1_epi16(static_cast<short>(0x8FFF)));
  const __m512i rebias = _mm512_set1_epi16((127 - 15 - kF16ScaleLog2) << 7);
  const __mmask32 nonzero = _mm512_test_epi16_mask(w, _mm512_set1_epi16(0x7FFF));
  const __m512i upper = _mm512_maskz_add_epi16(nonzero, narrowed, rebias);
  // Entry m is the BF16 of m, its exponent relative to that of 2^10.
  constexpr auto entry = [](long long bf16) { return (bf16 - ((127 + 10) << 7)) & 0xFFFF; };
  constexpr long long kZeroToThree =
      (entry(0x3F80) << 16) | (entry(0x4000) << 32) | (entry(0x4040) << 48);
  constexpr long long kFourToSeven =
      entry(0x4080) | (entry(0x40A0) << 16) | (entry(0x40C0) << 32) | (entry(0x40E0) << 48);
  const __m512i table = _mm512_broadcast_i32x4(_mm_set_epi64x(kFourToSeven, kZeroToThree));
  const __m512i relative = _mm512_permutexvar_epi16(w, table);  // by the low bits alone
  const __m512i place = _mm512_and_si512(upper, _mm512_set1_epi16(static_cast<short>(0xFF80)));
  *w0 = upper;
  *w1 = _mm512_maskz_add_epi16(_mm512_test_epi16_mask(w, _mm512_set1_epi16(7)), place, relative);
}

// How far ahead of their use weights are asked for, into L2 and into L1, as measured: memory far
// enough, and no more lines on their way to L1 than it can wait for.
constexpr int64_t kPrefetchL2Bytes = 4096;
constexpr int64_t kPrefetchL1Bytes = 2048;
constexpr int64_t kPrefetchBf16Bytes = 3072;

// 32 k of a panel, [16][32][2] F16, into [feature half][term][16][16][2].
inline void split_f16_tiles(const uint16_t* panel, uint16_t* out) {
  for (int64_t row = 0; row < kTileRows; ++row) {
    for (int64_t half = 0; half < 2; ++half) {
      const uint16_t* from = panel + row * 64 + half * 32;
      _mm_prefetch(reinterpret_cast<const char*>(from) + kPrefetchL1Bytes, _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(from) + kPrefetchL2Bytes, _MM_HINT_T1);
      __m512i w0;
      __m512i w1;
      split_f16(_mm512_load_si512(from), &w0, &w1);
      uint16_t* at = out + half * kTerms * kTileElements + row * 32;
      _mm512_store_si512(at, w0);
      _mm512_store_si512(at + kTileElements, w1);
    }
  }
}

inline const uint16_t* panel_tile(const Task& task, int64_t panel_idx, int64_t k_tile) {
  return task.panel + (panel_idx * task.num_k_tiles + k_tile) * kPanelTileElements;
}

// The 2 KiB of a k tile of BF16 weights to come.
inline void prefetch_bf16_tiles(const uint16_t* panel_tile) {
  const char* from = reinterpret_cast<const char*>(panel_tile) + kPrefetchBf16Bytes;
  for (int64_t line = 0; line < 32; ++line) _mm_prefetch(from + line * 64, _MM_HINT_T1);
}

// Where the weights of a panel's k tile come from: prepare(panel, k) readies them, tile(half, term)
// finds them.
class StreamedBf16 {
 public:
  static constexpr bool kTwoTerms = false;
  static constexpr int64_t kRowBytes = 128;
  explicit StreamedBf16(const Task& task) : task_(task) {}
  inline void prepare(int64_t panel_idx, int64_t k_tile) {
    at_ = panel_tile(task_, panel_idx, k_tile);
    prefetch_bf16_tiles(at_);
  }
  const uint16_t* tile(int64_t half, int64_t) const { return at_ + half * 32; }

 private:
  const Task& task_;
  const uint16_t* at_ = nullptr;
};

class StreamedF16 {
 public:
  static constexpr bool kTwoTerms = true;
  static constexpr int64_t kRowBytes = 64;
  explicit StreamedF16(const Task& task) : task_(task) {}
  inline void prepare(int64_t panel_idx, int64_t k_tile) {
    at_ = ring_[next_];  // the tiles before may still be on their way
    next_ = (next_ + 1) % kRing;
    split_f16_tiles(panel_tile(task_, panel_idx, k_tile), at_);
  }
  const uint16_t* tile(int64_t half, int64_t term) const {
    return at_ + (half * kTerms + term) * kTileElements;
  }

 private:
  static constexpr int kRing = 4;
  const Task& task_;
  uint16_t* at_ = nullptr;
  int next_ = 0;
  alignas(64) uint16_t ring_[kRing][2 * kTerms * kTileElements];
};

// F16 that split_weights has split before.
class SplitF16 {
 public:
  static constexpr bool kTwoTerms = true;
  static constexpr int64_t kRowBytes = 64;
  explicit SplitF16(const Task& task) : task_(task) {}
  inline void prepare(int64_t, int64_t k_tile) {
    at_ = task_.weights_scratch + (k_tile - task_.k_begin) * kTerms * kPanelTileElements;
  }
  const uint16_t* tile(int64_t half, int64_t term) const {
    return at_ + (half * kTerms + term) * kTileElements;
  }

 private:
  const Task& task_;
  const uint16_t* at_ = nullptr;
};

void split_weights(const Task& task) {
  for (int64_t k = task.k_begin; k < task.k_end; ++k) {
    split_f16_tiles(panel_tile(task, 0, k),
                    task.weights_scratch + (k - task.k_begin) * kTerms * kPanelTileElements);
  }
}

template <class Source>
inline void load_weights(const Source& source, int64_t term) {
  load_tile<6>(source.tile(0, term), Source::kRowBytes);
  load_tile<7>(source.tile(1, term), Source::kRowBytes);
}

// Two row tiles by one panel: the sums are {rows 0, rows 1} x {half 0, half 1}.
inline void load_x(const uint16_t* x, int64_t row_tile_stride, int64_t term) {
  load_tile<4>(x + term * kTileElements, 64);
  load_tile<5>(x + row_tile_stride + term * kTileElements, 64);
}

inline void multiply_two_row_tiles() {
  multiply_tiles<0, 4, 6>();
  multiply_tiles<1, 4, 7>();
  multiply_tiles<2, 5, 6>();
  multiply_tiles<3, 5, 7>();
}

template <class Source>
void sum_two_row_tiles(const Task& task, int64_t row_tile, Source& source) {
  const int64_t row_tile_stride = x_tile_offset(1, 0, task.num_k_tiles);
  for (int64_t k = task.k_begin; k < task.k_end; ++k) {
    const uint16_t* x = task.x_tiles + x_tile_offset(row_tile, k, task.num_k_tiles);
    source.prepare(0, k);
    load_weights(source, 0);
    load_x(x, row_tile_stride, 0);
    multiply_two_row_tiles();
    load_x(x, row_tile_stride, 1);
    multiply_two_row_tiles();
    if constexpr (Source::kTwoTerms) {
      load_weights(source, 1);
      load_x(x, row_tile_stride, 0);
      multiply_two_row_tiles();
    }
  }
}

// One row tile by one or two panels: the sums are {half 0, half 1} of each panel. Both terms of x
// stay in registers, and two panels keep twice as many sums in flight.
template <int kSums, class Source>
inline void multiply_panel(const Source& source) {
  load_weights(source, 0);
  multiply_tiles<kSums, 4, 6>();
  multiply_tiles<kSums + 1, 4, 7>();
  multiply_tiles<kSums, 5, 6>();
  multiply_tiles<kSums + 1, 5, 7>();
  if constexpr (Source::kTwoTerms) {
    load_weights(source, 1);
    multiply_tiles<kSums, 4, 6>();
    multiply_tiles<kSums + 1, 4, 7>();
  }
}

template <int kPanels, class Source>
void sum_row_tile(const Task& task, int64_t row_tile, Source& source) {
  for (int64_t k = task.k_begin; k < task.k_end; ++k) {
    const uint16_t* x = task.x_tiles + x_tile_offset(row_tile, k, task.num_k_tiles);
    load_tile<4>(x, 64);
    load_tile<5>(x + kTileElements, 64);
    source.prepare(0, k);
    multiply_panel<0>(source);
    if constexpr (kPanels == 2) {
      source.prepare(1, k);
      multiply_panel<2>(source);
    }
  }
}

inline __mmask16 column_mask(int64_t num_columns) {
  return static_cast<__mmask16>(num_columns >= 16 ? 0xFFFFU : (1U << num_columns) - 1U);
}

// Tile kTile from or to `rows` rows of out, of which num_columns columns exist.
template <int kTile>
void load_sums(const float* out, int64_t stride, int64_t rows, int64_t num_columns) {
  if (num_columns >= 16) return load_tile<kTile>(out, stride * 4);
  alignas(64) float whole[kTileRows * 16];
  for (int64_t r = 0; r < rows; ++r) {
    _mm512_store_ps(whole + r * 16,
                    _mm512_maskz_loadu_ps(column_mask(num_columns), out + r * stride));
  }
  load_tile<kTile>(whole, 64);
}

template <int kTile>
void store_sums(float* out, int64_t stride, int64_t rows, int64_t num_columns) {
  if (num_columns >= 16) return store_tile<kTile>(out, stride * 4);
  alignas(64) float whole[kTileRows * 16];
  store_tile<kTile>(whole, 64);
  for (int64_t r = 0; r < rows; ++r) {
    _mm512_mask_storeu_ps(out + r * stride, column_mask(num_columns),
                          _mm512_load_ps(whole + r * 16));
  }
}

void add_bias(float* out, int64_t stride, int64_t rows, int64_t num_columns, const float* bias) {
  const __mmask16 mask = column_mask(num_columns);
  const __m512 values = _mm512_maskz_loadu_ps(mask, bias);
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 sums = _mm512_maskz_loadu_ps(mask, out + r * stride);
    _mm512_mask_storeu_ps(out + r * stride, mask, _mm512_add_ps(sums, values));
  }
}

// Where the sums of tile kTile belong: its first number in out, and the rows and columns it has.
struct Place {
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
};

template <int kTile>
void begin_sums(const Task& task, const Place& place) {
  if (task.k_begin == 0 || place.columns <= 0) return zero_tile<kTile>();
  load_sums<kTile>(task.out + place.row * task.out_stride + place.column, task.out_stride,
                   place.rows, place.columns);
}

template <int kTile>
void end_sums(const Task& task, const Place& place) {
  if (place.columns <= 0) return;
  float* out = task.out + place.row * task.out_stride + place.column;
  store_sums<kTile>(out, task.out_stride, place.rows, place.columns);
  if (task.bias == nullptr || task.k_end < task.num_k_tiles) return;
  add_bias(out, task.out_stride, place.rows, place.columns, task.bias + place.column);
}

template <class Sum>
void with_sums(const Task& task, const Place (&places)[4], const Sum& sum) {
  begin_sums<0>(task, places[0]);
  begin_sums<1>(task, places[1]);
  begin_sums<2>(task, places[2]);
  begin_sums<3>(task, places[3]);
  sum();
  end_sums<0>(task, places[0]);
  end_sums<1>(task, places[1]);
  end_sums<2>(task, places[2]);
  end_sums<3>(task, places[3]);
}

// 17 to 32 rows from `row` on.
template <class Source>
void run_two_row_tiles(const Task& task, int64_t row, int64_t rows, Source& source) {
  const int64_t n = task.num_columns;
  const int64_t lower = row + kTileRows;
  const Place places[4] = {{row, kTileRows, 0, n},
                           {row, kTileRows, 16, n - 16},
                           {lower, rows - kTileRows, 0, n},
                           {lower, rows - kTileRows, 16, n - 16}};
  with_sums(task, places, [&] { sum_two_row_tiles(task, row / kTileRows, source); });
}

// 1 to 16 rows from `row` on.
template <class Source>
void run_row_tile(const Task& task, int64_t row, int64_t rows, Source& source) {
  const int64_t n = task.num_columns;
  const Place places[4] = {
      {row, rows, 0, n}, {row, rows, 16, n - 16}, {row, rows, 32, n - 32}, {row, rows, 48, n - 48}};
  with_sums(task, places, [&] {
    if (task.num_columns > kPanelColumns) {
      sum_row_tile<2>(task, row / kTileRows, source);
    } else {
      sum_row_tile<1>(task, row / kTileRows, source);
    }
  });
}

template <class Source>
void run_rows(const Task& task) {
  Source source(task);
  const int64_t full_rows = task.num_rows / kGroupRows * kGroupRows;
  if (full_rows > 0) configure_tiles(kTileRows, kTileRows);
  for (int64_t row = 0; row < full_rows; row += kGroupRows) {
    run_two_row_tiles(task, row, kGroupRows, source);
  }
  const int64_t rest = task.num_rows - full_rows;
  if (rest > kTileRows) {
    configure_tiles(kTileRows, rest - kTileRows);
    run_two_row_tiles(task, full_rows, rest, source);
  } else if (rest > 0) {
    configure_tiles(rest, rest);
    run_row_tile(task, full_rows, rest, source);
  }
}

}  // namespace

void split_row(const float* x, int64_t num_k, int64_t num_k_tiles, int64_t row, uint16_t* x_tiles) {
  uint16_t* out =
      x_tiles + x_tile_offset(row / kTileRows, 0, num_k_tiles) + row % kTileRows * kTileK;
  for (int64_t k_tile = 0; k_tile < num_k_tiles; ++k_tile, out += kTerms * kTileElements) {
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t k = k_tile * kTileK + half * 16;
      const __m512 value = _mm512_maskz_loadu_ps(column_mask(num_k > k ? num_k - k : 0), x + k);
      const __m256bh upper = _mm512_cvtneps_pbh(value);
      const __m512 rest = _mm512_sub_ps(value, _mm512_cvtpbh_ps(upper));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + half * 16), (__m256i)upper);
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + kTileElements + half * 16),
                         (__m256i)_mm512_cvtneps_pbh(rest));
    }
  }
}

bool scale_f16(uint16_t* values, int64_t count) {
  const __m512h scale = _mm512_castsi512_ph(_mm512_set1_epi16((15 + kF16ScaleLog2) << 10));
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; i += 32) {
    const __m512i value = _mm512_load_si512(values + i);
    const __m512i magnitude = _mm512_and_si512(value, _mm512_set1_epi16(0x7FFF));
    largest = _mm512_max_epu16(largest, magnitude);
    _mm512_store_ph(values + i, _mm512_mul_ph(_mm512_castsi512_ph(value), scale));
  }
  return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(kF16PairLimit)) == 0;
}

void run_bf16(const Task& task) {
  run_rows<StreamedBf16>(task);
}

void run_f16(const Task& task) {
  if (task.num_rows <= kGroupRows) return run_rows<StreamedF16>(task);
  split_weights(task);
  run_rows<SplitF16>(task);
}

void release_tiles() {
  asm volatile("tilerelease");
}

}  // namespace quire::cpu::amx
