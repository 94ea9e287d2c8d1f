#include "cpu/ops/amx/kernel.h"

#include <immintrin.h>

#include "cpu/ops/amx/kernel-inl.h"

namespace quire::cpu::amx {

void convert_row(const float* x, int64_t num_k, int64_t num_k_tiles, int num_terms, int64_t row,
                 uint16_t* x_tiles) {
  uint16_t* out = x_tiles + x_tile_offset(row / kTileRows, 0, num_k_tiles, num_terms) +
                  row % kTileRows * kTileK;
  for (int64_t k_tile = 0; k_tile < num_k_tiles; ++k_tile, out += num_terms * kTileElements) {
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t k = k_tile * kTileK + half * 16;
      const __m512 value = _mm512_maskz_loadu_ps(column_mask(num_k > k ? num_k - k : 0), x + k);
      const __m256bh upper = _mm512_cvtneps_pbh(value);
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + half * 16), (__m256i)upper);
      if (num_terms == 1) continue;
      const __m512 rest = _mm512_sub_ps(value, _mm512_cvtpbh_ps(upper));
      _mm256_store_si256(reinterpret_cast<__m256i*>(out + kTileElements + half * 16),
                         (__m256i)_mm512_cvtneps_pbh(rest));
    }
  }
}

bool encode_f16(uint16_t* values, int64_t count) {
  const __m256i sign_bit = _mm256_set1_epi16(static_cast<short>(0x8000));
  const __m256i limit = _mm256_set1_epi16(kF16PairLimit);
  const __m512i rebias = _mm512_set1_epi32((127 - kF16PairBias) << 10);
  __mmask16 too_large = 0;
  for (int64_t i = 0; i < count; i += 16) {
    auto* at = reinterpret_cast<__m256i*>(values + i);
    const __m256i value = _mm256_load_si256(at);
    const __m256i magnitude = _mm256_andnot_si256(sign_bit, value);
    too_large |= _mm256_cmpge_epu16_mask(magnitude, limit);
    // Subnormal F16 are normal numbers in F32.
    const __m512i wide = _mm512_castps_si512(_mm512_cvtph_ps(magnitude));
    const __m512i encoded = _mm512_maskz_sub_epi32(_mm512_test_epi32_mask(wide, wide),
                                                   _mm512_srli_epi32(wide, 13), rebias);
    const __m256i sign = _mm256_and_si256(sign_bit, value);
    _mm256_store_si256(at, _mm256_or_si256(sign, _mm512_cvtepi32_epi16(encoded)));
  }
  return too_large == 0;
}

const Kernel kKernel = {run_with_tiles<Tiles>, Tiles::release};

}  // namespace quire::cpu::amx
