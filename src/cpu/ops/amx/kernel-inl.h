// Products of BF16 and F16 weights with AMX tiles. `Tiles` are the tile instructions
// (cpu/ops/amx/tiles-inl.h). Tiles 0 to 3 hold the sums of up to 32 rows by 32 features, tiles 4
// and 5 the rows' activations, and tiles 6 and 7 the features' weights. See gemm_amx.h for the
// numerics.
#pragma once

#include <immintrin.h>

#include "cpu/ops/amx/kernel.h"
#include "cpu/ops/amx/tiles-inl.h"

namespace quire::cpu::amx {
namespace {

constexpr int64_t kPanelTileElements = 2 * kTileElements;  // 32 k of a panel

// The offset of the first term of a tile of x. Each number has num_terms terms.
constexpr int64_t x_tile_offset(int64_t row_tile, int64_t k_tile, int64_t num_k_tiles,
                                int num_terms) {
  return (row_tile * num_k_tiles + k_tile) * num_terms * kTileElements;
}

// The upper byte of a BF16, indexed by the sign (twice) and the upper 4 exponent bits of a packed
// F16. Both zeros stay zeros.
struct UpperBytes {
  constexpr UpperBytes() {
    // Half the difference of the exponent biases, which is even.
    constexpr int kFirst = (127 - kF16PairBias) / 2;
    for (int i = 1; i < 16; ++i) {
      bytes[i] = static_cast<uint8_t>(kFirst + i);
      bytes[i + 48] = static_cast<uint8_t>(0x80 + kFirst + i);
    }
    bytes[48] = 0x80;
  }
  alignas(64) uint8_t bytes[64] = {};
};
static_assert((127 - kF16PairBias) % 2 == 0);
constexpr UpperBytes kUpperBytes;

// Splits each of 32 packed F16 exactly into two BF16: the upper 8 bits of the significand, and the
// lower 3 bits. The first BF16 has the bits of the F16 except for the upper exponent bits. The
// second has the same sign, and a lower exponent that depends on the value of the three bits.
inline void split_f16(__m512i w, __m512i* w0, __m512i* w1) {
  const __m512i upper_bytes = _mm512_load_si512(kUpperBytes.bytes);
  const __m512i narrowed = _mm512_srai_epi16(w, 3);
  *w0 = _mm512_mask_permutexvar_epi8(narrowed, 0xAAAAAAAAAAAAAAAA, narrowed, upper_bytes);
  // Entry m is 2^10 minus the BF16 of m, as bits without sign. For m = 0 the subtraction saturates
  // to zero.
  constexpr auto entry = [](long long bf16) { return ((127 + 10) << 7) - bf16; };
  constexpr long long kZeroToThree =
      0xFFFF | (entry(0x3F80) << 16) | (entry(0x4000) << 32) | (entry(0x4040) << 48);
  constexpr long long kFourToSeven =
      entry(0x4080) | (entry(0x40A0) << 16) | (entry(0x40C0) << 32) | (entry(0x40E0) << 48);
  const __m512i table = _mm512_broadcast_i32x4(_mm_set_epi64x(kFourToSeven, kZeroToThree));
  const __m512i less = _mm512_permutexvar_epi16(w, table);  // indexed only by the low bits
  const __m512i place = _mm512_and_si512(*w0, _mm512_set1_epi16(static_cast<short>(0xFF80)));
  *w1 = _mm512_subs_epu16(place, less);
}

// The distances at which weights are prefetched into L2 and into L1, chosen by measurement. They
// cover the memory latency without more outstanding lines than L1 supports. With a longer L1
// distance, models that fit in L3 would be slightly faster, but models in memory much slower.
constexpr int64_t kPrefetchL2Bytes = 3072;
constexpr int64_t kPrefetchL1Bytes = 1024;

inline void prefetch_weights(const uint16_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetchL1Bytes, _MM_HINT_T0);
  _mm_prefetch(reinterpret_cast<const char*>(at) + kPrefetchL2Bytes, _MM_HINT_T1);
}

// Splits half a panel for 32 k: reads the first 16 features of [16][32][2] packed F16, writes
// [term][16][16][2].
inline void split_f16_half(const uint16_t* from, uint16_t* out) {
  for (int64_t row = 0; row < kTileRows; ++row, from += 64, out += 32) {
    prefetch_weights(from);
    __m512i w0;
    __m512i w1;
    split_f16(_mm512_load_si512(from), &w0, &w1);
    _mm512_store_si512(out, w0);
    _mm512_store_si512(out + kTileElements, w1);
  }
}

inline int64_t num_panels(const Task& task) {
  return (task.num_columns + kPanelColumns - 1) / kPanelColumns;
}

// Returns half a panel for 32 k: [16][32][2], in which the half's 16 features come first.
inline const uint16_t* half_tile(const Task& task, int64_t panel_idx, int64_t k_tile, int half) {
  return task.panels + (panel_idx * task.num_k_tiles + k_tile) * kPanelTileElements + half * 32;
}

// The classes below are sources of a panel's weights. After begin_panel(panel), prepare(panel, k,
// half) prepares half of a k tile, and tile(half, term) returns it. StreamedBf16 reads BF16 weights
// in place.
class StreamedBf16 {
 public:
  static constexpr bool kTwoTerms = false;
  static constexpr int64_t kRowBytes = 128;
  explicit StreamedBf16(const Task& task) : task_(task) {}
  void begin_panel(int64_t) {}
  inline void prepare(int64_t panel_idx, int64_t k_tile, int half) {
    at_ = half_tile(task_, panel_idx, k_tile, 0);
    for (int64_t row = 0; row < kTileRows; ++row) prefetch_weights(at_ + row * 64 + half * 32);
  }
  const uint16_t* tile(int half, int64_t) const { return at_ + half * 32; }

 private:
  const Task& task_;
  const uint16_t* at_ = nullptr;
};

// Splits F16 weights while they are streamed. It is for tasks over all of k, which use each half
// tile once and in order. The next half is split before the current one is multiplied, because a
// tile cannot be loaded before its stores have reached the cache. Measurements suggest that a load
// also waits for stores to the same page offset, so the weights are split in halves of 2 KiB.
class StreamedF16 {
 public:
  static constexpr bool kTwoTerms = true;
  static constexpr int64_t kRowBytes = 64;
  explicit StreamedF16(const Task& task)
      : next_(task.panels), end_(half_tile(task, num_panels(task), 0, 0)) {
    split_next(0);
  }
  void begin_panel(int64_t) {}
  inline void prepare(int64_t, int64_t, int half) {
    at_[half] = ring_[ring_idx_];
    if (half == 1) next_ += kPanelTileElements;
    if (next_ != end_) split_next(1 - half);
  }
  const uint16_t* tile(int half, int64_t term) const { return at_[half] + term * kTileElements; }

 private:
  inline void split_next(int half) {
    ring_idx_ = (ring_idx_ + 1) % kRing;  // earlier tiles may still be in use
    split_f16_half(next_ + half * 32, ring_[ring_idx_]);
  }

  static constexpr int kRing = 4;
  const uint16_t* next_;
  const uint16_t* end_;
  const uint16_t* at_[2] = {};
  int ring_idx_ = 0;
  alignas(64) uint16_t ring_[kRing][kMaxTerms * kTileElements];
};

// Splits the F16 weights of a panel before its products, for tasks that use them several times.
class SplitF16 {
 public:
  static constexpr bool kTwoTerms = true;
  static constexpr int64_t kRowBytes = 64;
  explicit SplitF16(const Task& task) : task_(task) {}
  void begin_panel(int64_t panel_idx) {
    for (int64_t k = task_.k_begin; k < task_.k_end; ++k) {
      for (int half = 0; half < 2; ++half) {
        split_f16_half(half_tile(task_, panel_idx, k, half), split_half(k, half));
      }
    }
  }
  inline void prepare(int64_t, int64_t k_tile, int) { k_tile_ = k_tile; }
  const uint16_t* tile(int half, int64_t term) const {
    return split_half(k_tile_, half) + term * kTileElements;
  }

 private:
  uint16_t* split_half(int64_t k_tile, int half) const {
    return task_.weights_scratch +
           ((k_tile - task_.k_begin) * 2 + half) * kMaxTerms * kTileElements;
  }

  const Task& task_;
  int64_t k_tile_ = 0;
};

inline __mmask16 column_mask(int64_t num_columns) {
  return static_cast<__mmask16>(num_columns >= 16 ? 0xFFFFU : (1U << num_columns) - 1U);
}

void add_bias(float* out, int64_t stride, int64_t rows, int64_t num_columns, const float* bias) {
  const __mmask16 mask = column_mask(num_columns);
  const __m512 values = _mm512_maskz_loadu_ps(mask, bias);
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 sums = _mm512_maskz_loadu_ps(mask, out + r * stride);
    _mm512_mask_storeu_ps(out + r * stride, mask, _mm512_add_ps(sums, values));
  }
}

// The position of a tile's sums in out: the first row and column, and the numbers of rows and
// columns.
struct OutTile {
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
};

// The products of one task. `Source` provides its weights; kTerms is the number of BF16 per
// activation.
template <class Tiles, class Source, int kTerms>
class TileProducts {
 public:
  explicit TileProducts(const Task& task) : task_(task), source_(task) {}

  void run() {
    for (int64_t i = 0; i < num_panels(task_); ++i) {
      source_.begin_panel(i);
      run_rows(i);
    }
  }

 private:
  const uint16_t* x_tile(int64_t row_tile, int64_t k_tile) const {
    return task_.x_tiles + x_tile_offset(row_tile, k_tile, task_.num_k_tiles, kTerms);
  }

  // Computes all rows by one panel.
  void run_rows(int64_t panel_idx) {
    const int64_t full_rows = task_.num_rows / kGroupRows * kGroupRows;
    if (full_rows > 0) set_shape(kTileRows, kTileRows);
    for (int64_t row = 0; row < full_rows; row += kGroupRows) {
      run_two_row_tiles(panel_idx, row, kGroupRows);
    }
    const int64_t rest = task_.num_rows - full_rows;
    if (rest > kTileRows) {
      set_shape(kTileRows, rest - kTileRows);
      run_two_row_tiles(panel_idx, full_rows, rest);
    } else if (rest > 0) {
      set_shape(rest, rest);
      run_row_tile(panel_idx, full_rows, rest);
    }
  }

  // Sets the tiles of sums and activations to the existing rows, so that no other memory is read or
  // written. Setting the configuration clears all tiles and is slow, so it is set only if it
  // changes.
  void set_shape(int64_t rows0, int64_t rows1) {
    if (rows0 == rows0_ && rows1 == rows1_) return;
    rows0_ = rows0;
    rows1_ = rows1;
    TileConfig config;
    for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64;
    config.rows[0] = config.rows[1] = config.rows[4] = static_cast<uint8_t>(rows0);
    config.rows[2] = config.rows[3] = config.rows[5] = static_cast<uint8_t>(rows1);
    config.rows[6] = config.rows[7] = kTileRows;
    Tiles::configure(config);
  }

  // Computes 17 to 32 rows, starting at `row`. The sums are {rows 0, rows 1} x {half 0, half 1}.
  void run_two_row_tiles(int64_t panel_idx, int64_t row, int64_t rows) {
    const int64_t column = panel_idx * kPanelColumns;
    const int64_t n = task_.num_columns - column;
    const int64_t lower = row + kTileRows;
    const OutTile tiles[4] = {{row, kTileRows, column, n},
                              {row, kTileRows, column + 16, n - 16},
                              {lower, rows - kTileRows, column, n},
                              {lower, rows - kTileRows, column + 16, n - 16}};
    begin_sums<0>(tiles[0]);
    begin_sums<1>(tiles[1]);
    begin_sums<2>(tiles[2]);
    begin_sums<3>(tiles[3]);
    for (int64_t k = task_.k_begin; k < task_.k_end; ++k) {
      const uint16_t* const x = x_tile(row / kTileRows, k);
      const uint16_t* const x_lower = x_tile(row / kTileRows + 1, k);
      source_.prepare(panel_idx, k, 0);
      source_.prepare(panel_idx, k, 1);
      load_weights(0);
      for (int64_t term = 0; term < kTerms; ++term) multiply_two_row_tiles(x, x_lower, term);
      if constexpr (Source::kTwoTerms) {
        load_weights(1);
        multiply_two_row_tiles(x, x_lower, 0);
      }
    }
    end_sums<0>(tiles[0]);
    end_sums<1>(tiles[1]);
    end_sums<2>(tiles[2]);
    end_sums<3>(tiles[3]);
  }

  inline void load_weights(int64_t term) {
    Tiles::template load<6>(source_.tile(0, term), Source::kRowBytes);
    Tiles::template load<7>(source_.tile(1, term), Source::kRowBytes);
  }

  inline void multiply_two_row_tiles(const uint16_t* upper, const uint16_t* lower, int64_t term) {
    Tiles::template load<4>(upper + term * kTileElements, 64);
    Tiles::template load<5>(lower + term * kTileElements, 64);
    Tiles::template multiply_bf16<0, 4, 6>();
    Tiles::template multiply_bf16<1, 4, 7>();
    Tiles::template multiply_bf16<2, 5, 6>();
    Tiles::template multiply_bf16<3, 5, 7>();
  }

  // Computes 1 to 16 rows, starting at `row`. The terms of the row tile stay in registers.
  void run_row_tile(int64_t panel_idx, int64_t row, int64_t rows) {
    const int64_t column = panel_idx * kPanelColumns;
    const int64_t n = task_.num_columns - column;
    const OutTile tiles[2] = {{row, rows, column, n}, {row, rows, column + 16, n - 16}};
    begin_sums<0>(tiles[0]);
    begin_sums<1>(tiles[1]);
    for (int64_t k = task_.k_begin; k < task_.k_end; ++k) {
      const uint16_t* x = x_tile(row / kTileRows, k);
      Tiles::template load<4>(x, 64);
      if constexpr (kTerms == 2) Tiles::template load<5>(x + kTileElements, 64);
      source_.prepare(panel_idx, k, 0);
      multiply_row_tile<0>();
      source_.prepare(panel_idx, k, 1);
      multiply_row_tile<1>();
    }
    end_sums<0>(tiles[0]);
    end_sums<1>(tiles[1]);
  }

  // Multiplies one row tile by half a panel.
  template <int kHalf>
  inline void multiply_row_tile() {
    Tiles::template load<6>(source_.tile(kHalf, 0), Source::kRowBytes);
    Tiles::template multiply_bf16<kHalf, 4, 6>();
    if constexpr (kTerms == 2) Tiles::template multiply_bf16<kHalf, 5, 6>();
    if constexpr (Source::kTwoTerms) {
      Tiles::template load<7>(source_.tile(kHalf, 1), Source::kRowBytes);
      Tiles::template multiply_bf16<kHalf, 4, 7>();
    }
  }

  template <int kTile>
  void begin_sums(const OutTile& tile) {
    if (task_.k_begin == 0 || tile.columns <= 0) return Tiles::template zero<kTile>();
    const float* out = task_.out + tile.row * task_.out_stride + tile.column;
    if (tile.columns >= 16) return Tiles::template load<kTile>(out, task_.out_stride * 4);
    alignas(64) float whole[kTileRows * 16];
    for (int64_t r = 0; r < tile.rows; ++r) {
      _mm512_store_ps(whole + r * 16,
                      _mm512_maskz_loadu_ps(column_mask(tile.columns), out + r * task_.out_stride));
    }
    Tiles::template load<kTile>(whole, 64);
  }

  template <int kTile>
  void end_sums(const OutTile& tile) {
    if (tile.columns <= 0) return;
    float* out = task_.out + tile.row * task_.out_stride + tile.column;
    if (tile.columns >= 16) {
      Tiles::template store<kTile>(out, task_.out_stride * 4);
    } else {
      alignas(64) float whole[kTileRows * 16];
      Tiles::template store<kTile>(whole, 64);
      for (int64_t r = 0; r < tile.rows; ++r) {
        _mm512_mask_storeu_ps(out + r * task_.out_stride, column_mask(tile.columns),
                              _mm512_load_ps(whole + r * 16));
      }
    }
    if (task_.bias == nullptr || task_.k_end < task_.num_k_tiles) return;
    add_bias(out, task_.out_stride, tile.rows, tile.columns, task_.bias + tile.column);
  }

  const Task& task_;
  Source source_;
  int64_t rows0_ = 0;
  int64_t rows1_ = 0;
};

template <class Tiles>
void run_with_tiles(const Task& task) {
  if (!task.is_f16) {
    task.num_terms == 1 ? TileProducts<Tiles, StreamedBf16, 1>(task).run()
                        : TileProducts<Tiles, StreamedBf16, 2>(task).run();
    return;
  }
  const bool uses_weights_once =
      task.num_rows <= kGroupRows && task.k_begin == 0 && task.k_end == task.num_k_tiles;
  uses_weights_once ? TileProducts<Tiles, StreamedF16, 2>(task).run()
                    : TileProducts<Tiles, SplitF16, 2>(task).run();
}

}  // namespace
}  // namespace quire::cpu::amx
