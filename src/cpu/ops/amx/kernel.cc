// AMX tiles: 0 to 3 hold the sums of up to 32 rows by 32 features, 4 and 5 the rows' activations,
// 6 and 7 the features' weights. See gemm_amx.h for the numerics.
#include "cpu/ops/amx/kernel.h"

#include <immintrin.h>

namespace quire::cpu::amx {
namespace {

constexpr int64_t kPanelTileElements = 2 * kTileElements;  // 32 k of a panel

// The compiler's own intrinsics do not say that tiles read and write memory.
template <int kTile>
inline void load_tile(const void* from, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(stride_bytes), "i"(kTile)
               : "memory");
}
template <int kTile>
inline void store_tile(void* to, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
               :
               : "r"(to), "r"(stride_bytes), "i"(kTile)
               : "memory");
}
template <int kTile>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kSums, int kX, int kW>
inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kX), "i"(kW));
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Sums and activations have as many rows as there are, so nothing else is read or written.
void configure_tiles(int64_t rows0, int64_t rows1) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64;
  const auto first = static_cast<uint8_t>(rows0);
  const auto second = static_cast<uint8_t>(rows1 > 0 ? rows1 : 1);
  config.rows[0] = config.rows[1] = config.rows[4] = first;
  config.rows[2] = config.rows[3] = config.rows[5] = second;
  config.rows[6] = config.rows[7] = kTileRows;
  asm volatile("ldtilecfg %0" : : "m"(config));
}

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

// The 2 KiB of a k tile of BF16 weights to come.
inline void prefetch_bf16_tiles(const uint16_t* panel_tile) {
  const char* from = reinterpret_cast<const char*>(panel_tile) + kPrefetchBf16Bytes;
  for (int64_t line = 0; line < 32; ++line) _mm_prefetch(from + line * 64, _MM_HINT_T1);
}

// Where the weights of a k tile come from: prepare(k) readies them, tile(half, term) finds them.
class StreamedBf16 {
 public:
  static constexpr bool kTwoTerms = false;
  static constexpr int64_t kRowBytes = 128;
  explicit StreamedBf16(const Task& task) : panel_(task.panel) {}
  inline void prepare(int64_t k_tile) {
    at_ = panel_ + k_tile * kPanelTileElements;
    prefetch_bf16_tiles(at_);
  }
  const uint16_t* tile(int64_t half, int64_t) const { return at_ + half * 32; }

 private:
  const uint16_t* panel_;
  const uint16_t* at_ = nullptr;
};

class StreamedF16 {
 public:
  static constexpr bool kTwoTerms = true;
  static constexpr int64_t kRowBytes = 64;
  explicit StreamedF16(const Task& task) : panel_(task.panel) {}
  inline void prepare(int64_t k_tile) {
    const uint16_t* from = panel_ + k_tile * kPanelTileElements;
    at_ = ring_[k_tile % 2];  // the tiles of the k before may still be on their way
    split_f16_tiles(from, at_);
  }
  const uint16_t* tile(int64_t half, int64_t term) const {
    return at_ + (half * kTerms + term) * kTileElements;
  }

 private:
  const uint16_t* panel_;
  uint16_t* at_ = nullptr;
  alignas(64) uint16_t ring_[2][2 * kTerms * kTileElements];
};

// F16 that split_weights has split before.
class SplitF16 {
 public:
  static constexpr bool kTwoTerms = true;
  static constexpr int64_t kRowBytes = 64;
  explicit SplitF16(const Task& task) : task_(task) {}
  inline void prepare(int64_t k_tile) {
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
    const uint16_t* from = task.panel + k * kPanelTileElements;
    split_f16_tiles(from, task.weights_scratch + (k - task.k_begin) * kTerms * kPanelTileElements);
  }
}

template <int kRowTiles>
inline void load_x(const uint16_t* x, int64_t row_tile_stride, int64_t term) {
  load_tile<4>(x + term * kTileElements, 64);
  if constexpr (kRowTiles == 2) load_tile<5>(x + row_tile_stride + term * kTileElements, 64);
}

template <class Source>
inline void load_weights(const Source& source, int64_t term) {
  load_tile<6>(source.tile(0, term), Source::kRowBytes);
  load_tile<7>(source.tile(1, term), Source::kRowBytes);
}

template <int kRowTiles>
inline void multiply() {
  multiply_tiles<0, 4, 6>();
  multiply_tiles<1, 4, 7>();
  if constexpr (kRowTiles == 2) {
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
}

// The sums in tiles 0 to 3 over the task's k, for the row tiles from `row_tile` on.
template <int kRowTiles, class Source>
void sum_tiles(const Task& task, int64_t row_tile, Source& source) {
  const int64_t row_tile_stride = x_tile_offset(1, 0, task.num_k_tiles);
  for (int64_t k = task.k_begin; k < task.k_end; ++k) {
    const uint16_t* x = task.x_tiles + x_tile_offset(row_tile, k, task.num_k_tiles);
    source.prepare(k);
    load_weights(source, 0);
    load_x<kRowTiles>(x, row_tile_stride, 0);
    multiply<kRowTiles>();
    load_x<kRowTiles>(x, row_tile_stride, 1);
    multiply<kRowTiles>();
    if constexpr (Source::kTwoTerms) {
      load_weights(source, 1);
      load_x<kRowTiles>(x, row_tile_stride, 0);
      multiply<kRowTiles>();
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

// Rows [row_tile * 16, + rows0 + rows1) of the task, in one or two row tiles.
template <int kRowTiles, class Source>
void run_group(const Task& task, int64_t row_tile, int64_t rows0, int64_t rows1, Source& source) {
  float* out = task.out + row_tile * kTileRows * task.out_stride;
  const auto each_tile = [&](auto visit) {
    visit.template operator()<0>(out, rows0, task.num_columns);
    visit.template operator()<1>(out + 16, rows0, task.num_columns - 16);
    if constexpr (kRowTiles == 2) {
      float* lower = out + kTileRows * task.out_stride;
      visit.template operator()<2>(lower, rows1, task.num_columns);
      visit.template operator()<3>(lower + 16, rows1, task.num_columns - 16);
    }
  };
  each_tile([&]<int kTile>(float* at, int64_t rows, int64_t columns) {
    if (task.k_begin == 0 || columns <= 0) return zero_tile<kTile>();
    load_sums<kTile>(at, task.out_stride, rows, columns);
  });
  sum_tiles<kRowTiles>(task, row_tile, source);
  each_tile([&]<int kTile>(float* at, int64_t rows, int64_t columns) {
    if (columns <= 0) return;
    store_sums<kTile>(at, task.out_stride, rows, columns);
    if (task.bias == nullptr || task.k_end < task.num_k_tiles) return;
    add_bias(at, task.out_stride, rows, columns, task.bias + (kTile % 2) * 16);
  });
}

template <class Source>
void run_rows(const Task& task) {
  Source source(task);
  const int64_t full_groups = task.num_rows / kGroupRows;
  if (full_groups > 0) configure_tiles(kTileRows, kTileRows);
  for (int64_t g = 0; g < full_groups; ++g) {
    run_group<2>(task, 2 * g, kTileRows, kTileRows, source);
  }
  const int64_t rest = task.num_rows % kGroupRows;
  if (rest == 0) return;
  const int64_t rows0 = rest < kTileRows ? rest : kTileRows;
  configure_tiles(rows0, rest - rows0);
  if (rest > kTileRows) {
    run_group<2>(task, 2 * full_groups, rows0, rest - rows0, source);
  } else {
    run_group<1>(task, 2 * full_groups, rows0, 0, source);
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

void scale_f16(uint16_t* values, int64_t count) {
  const __m512h scale = _mm512_castsi512_ph(_mm512_set1_epi16((15 + kF16ScaleLog2) << 10));
  for (int64_t i = 0; i < count; i += 32) {
    const __m512h scaled = _mm512_mul_ph(_mm512_load_ph(values + i), scale);
    _mm512_store_ph(values + i, scaled);
  }
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
