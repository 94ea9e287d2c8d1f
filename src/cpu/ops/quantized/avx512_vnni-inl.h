// The Isa for AVX-512 with VNNI: one instruction adds the products of 4 bytes in each of 16 lanes.
#pragma once

#include <immintrin.h>

#include "cpu/ops/quantized/kernel-inl.h"

namespace quire::cpu::quantized {
namespace {

struct Avx512Vnni {
  using F = __m512;
  using I = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kVecs = 2;
  static constexpr int kRows[] = {6, 4};
  static constexpr bool kTermsAre16Bits = false;
  static constexpr bool kSpreadsPrefetches = true;
  static constexpr bool kAddsPairs = false;
  static constexpr bool kIsE2m1 = false;

  static I zero() { return _mm512_setzero_si512(); }
  static I load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static I broadcast(const std::byte* from) {
    int32_t bytes = 0;
    __builtin_memcpy(&bytes, from, sizeof(bytes));
    return _mm512_set1_epi32(bytes);
  }
  static I and_bytes(I a, char mask) { return _mm512_and_si512(a, _mm512_set1_epi8(mask)); }
  static I look_up(const uint8_t* table, I codes) {
    const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), codes);
  }
  static I or_bytes(I a, I b) { return _mm512_or_si512(a, b); }
  template <int kBits>  // shift to the right; negative: to the left
  static I shift(I a) {
    return kBits < 0 ? _mm512_slli_epi32(a, kBits < 0 ? -kBits : 0)
                     : _mm512_srli_epi32(a, kBits < 0 ? 0 : kBits);
  }
  static I set1_int(int32_t a) { return _mm512_set1_epi32(a); }
  static I subtract(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I multiply(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static I widen_u8(const std::byte* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static I add(I a, I b) { return _mm512_add_epi32(a, b); }
  template <int kBits>
  static I dot(I sum, I weights, I x) {
    return _mm512_dpbusd_epi32(sum, weights, x);
  }
  static void keep(I& a) { asm("" : "+v"(a)); }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static F set1(float a) { return _mm512_set1_ps(a); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F mul_add(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F neg_mul_add(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static F load_f32(const float* from) { return _mm512_loadu_ps(from); }
  static F load_f16(const std::byte* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static F load_bf16(const std::byte* from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))), 16));
  }
  static F half_e8m0(const std::byte* from) {
    const I exponents = widen_u8(from);
    const I normal = _mm512_slli_epi32(_mm512_sub_epi32(exponents, set1_int(1)), 23);
    const __mmask16 is_small = _mm512_cmplt_epi32_mask(exponents, set1_int(2));
    return _mm512_castsi512_ps(
        _mm512_mask_sllv_epi32(normal, is_small, set1_int(0x00200000), exponents));
  }
  static F load_i8(const std::byte* from) {
    return to_float(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  static void store(F a, float* to) { _mm512_storeu_ps(to, a); }
};

}  // namespace
}  // namespace quire::cpu::quantized
