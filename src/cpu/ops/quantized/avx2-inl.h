// The Isa for AVX2 with FMA and F16C. Products of bytes are summed in 16 bits, which do not
// overflow for values of up to 6 bits. Values of 8 bits are widened first.
#pragma once

#include <immintrin.h>

#include "cpu/ops/quantized/kernel-inl.h"

namespace quire::cpu::quantized {
namespace {

struct Avx2 {
  using F = __m256;
  using I = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kVecs = 2;
  static constexpr int kRows[] = {3, 3};
  static constexpr bool kTermsAre16Bits = true;
  static constexpr bool kSpreadsPrefetches = false;
  static constexpr bool kAddsPairs = true;
  static constexpr bool kIsE2m1 = false;

  static I zero() { return _mm256_setzero_si256(); }
  static I load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static I broadcast(const std::byte* from) {
    int32_t bytes = 0;
    __builtin_memcpy(&bytes, from, sizeof(bytes));
    return _mm256_set1_epi32(bytes);
  }
  static I and_bytes(I a, char mask) { return _mm256_and_si256(a, _mm256_set1_epi8(mask)); }
  static I look_up(const uint8_t* table, I codes) {
    const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), codes);
  }
  static I or_bytes(I a, I b) { return _mm256_or_si256(a, b); }
  template <int kBits>  // shift to the right; negative: to the left
  static I shift(I a) {
    return kBits < 0 ? _mm256_slli_epi32(a, kBits < 0 ? -kBits : 0)
                     : _mm256_srli_epi32(a, kBits < 0 ? 0 : kBits);
  }
  static I set1_int(int32_t a) { return _mm256_set1_epi32(a); }
  static I subtract(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I multiply(I a, I b) { return _mm256_mullo_epi32(a, b); }
  static I widen_u8(const std::byte* from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
  static I add(I a, I b) { return _mm256_add_epi32(a, b); }
  template <int kBits>
  static I dot(I sum, I weights, I x) {
    if constexpr (kBits < 8) {
      const I pairs = _mm256_maddubs_epi16(weights, x);
      return add(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    const I even = _mm256_madd_epi16(_mm256_and_si256(weights, _mm256_set1_epi16(0xFF)),
                                     _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8));
    const I odd = _mm256_madd_epi16(_mm256_srli_epi16(weights, 8), _mm256_srai_epi16(x, 8));
    return add(sum, add(even, odd));
  }
  // even: two 16-bit numbers for bytes 0 and 2 of each lane's weights; odd: for bytes 1 and 3.
  static I dot_16_bits(I sum, I weights, I even, I odd) {
    const I low = _mm256_madd_epi16(_mm256_and_si256(weights, _mm256_set1_epi16(0xFF)), even);
    const I high = _mm256_madd_epi16(_mm256_srli_epi16(weights, 8), odd);
    return add(sum, add(low, high));
  }
  // Like dot(), but sums in lanes of 16 bits. A group adds 16 products of 4 bits with 8 bits per
  // lane: at most 30,480.
  static I dot_pairs(I sum, I weights, I x) {
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x));
  }
  static I add_pairs(I sums, I multipliers) { return _mm256_madd_epi16(sums, multipliers); }
  static void keep(I& a) { asm("" : "+x"(a)); }
  static F to_float(I a) { return _mm256_cvtepi32_ps(a); }
  static F set1(float a) { return _mm256_set1_ps(a); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F mul_add(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F neg_mul_add(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static F load_f32(const float* from) { return _mm256_loadu_ps(from); }
  static F load_f16(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static F load_bf16(const std::byte* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
  }
  static F half_e8m0(const std::byte* from) {
    const I exponents = widen_u8(from);
    const I normal = _mm256_slli_epi32(_mm256_sub_epi32(exponents, set1_int(1)), 23);
    const I subnormal = _mm256_sllv_epi32(set1_int(0x00200000), exponents);
    const I is_small = _mm256_cmpgt_epi32(set1_int(2), exponents);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, is_small));
  }
  static F load_i8(const std::byte* from) {
    return to_float(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static void store(F a, float* to) { _mm256_storeu_ps(to, a); }
};

}  // namespace
}  // namespace quire::cpu::quantized
