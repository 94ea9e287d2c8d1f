// Converts packed weights in registers to numbers of x's type and scales. All kernels that read
// packed weights share this code.
#pragma once

#include <type_traits>

#include "base/check.h"
#include "base/numbers.h"
#include "cuda/device/elements.cuh"
#include "cuda/gemm/packed/packed_kernels.h"

namespace quire::cuda::packed {

constexpr int kTiles = static_cast<int>(kPanelRows) / kPackedTileRows;
constexpr int kSteps = kSliceColumns / 16;  // of K, per slice
inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

// The values that a kernel is compiled for.
enum class Values { kInt4, kInt6, kInt8, kE2m1 };
constexpr int bits_of(Values values) {
  return values == Values::kInt8 ? 8 : values == Values::kInt6 ? 6 : 4;
}

// A pair of 16-bit floats: 128 in BF16 or 1024 in F16. The lowest mantissa bit of these numbers is
// worth 1, so integers can be inserted as bits.
template <typename T>
inline constexpr uint32_t kMagic = std::is_same_v<T, __half> ? 0x64006400U : 0x43004300U;
template <typename T>
inline constexpr uint32_t kOnes = std::is_same_v<T, __half> ? 0x3C003C00U : 0x3F803F80U;

template <typename T>
__device__ __forceinline__ uint32_t subtract_pairs(uint32_t a, uint32_t b) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 x = __hsub2(*reinterpret_cast<__half2*>(&a), *reinterpret_cast<__half2*>(&b));
    return *reinterpret_cast<const uint32_t*>(&x);
  } else {
    const __nv_bfloat162 x =
        __hsub2(*reinterpret_cast<__nv_bfloat162*>(&a), *reinterpret_cast<__nv_bfloat162*>(&b));
    return *reinterpret_cast<const uint32_t*>(&x);
  }
}

template <typename T>
__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  const Pair x = __hmul2(*reinterpret_cast<const Pair*>(&a), *reinterpret_cast<const Pair*>(&b));
  return *reinterpret_cast<const uint32_t*>(&x);
}

// (x & mask) | bits in one instruction; the compiler would generate two.
__device__ __forceinline__ uint32_t and_or(uint32_t x, uint32_t mask, uint32_t bits) {
  uint32_t result = 0;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(x), "r"(mask), "r"(bits));
  return result;
}

// A lane's words of a tile.
template <int kBits>
struct TileWords {
  uint32_t low[kBits == 8 ? 8 : 4];
  uint32_t high[2];  // kBits 6
};

template <int kBits>
__device__ __forceinline__ TileWords<kBits> load_tile(const unsigned char* tile, int lane) {
  TileWords<kBits> words;
#pragma unroll
  for (int i = 0; i < (kBits == 8 ? 2 : 1); ++i) {
    const uint4 load = reinterpret_cast<const uint4*>(tile)[i * 32 + lane];
    words.low[4 * i] = load.x;
    words.low[4 * i + 1] = load.y;
    words.low[4 * i + 2] = load.z;
    words.low[4 * i + 3] = load.w;
  }
  if constexpr (kBits == 6) {
    const uint2 load = reinterpret_cast<const uint2*>(tile + 512)[lane];
    words.high[0] = load.x;
    words.high[1] = load.y;
  }
  return words;
}

// The pair that is subtracted from the result of biased_pair() to get values minus 2^(bits - 1).
template <typename T, int kBits>
inline constexpr uint32_t kBias =
    kBits == 8 && !std::is_same_v<T, __half> ? 0 : kMagic<T> + (1U << (kBits - 1)) * 0x00010001U;

// Pair i of the lane's A operand of a step, plus kBias.
template <typename T, int kBits>
__device__ __forceinline__ uint32_t biased_pair(const TileWords<kBits>& words, int step, int i) {
  if constexpr (kBits == 8) {
    // Bytes 0 and 2 of the word, or 1 and 3.
    const uint32_t pair = words.low[2 * step + i / 2] >> (8 * (i % 2));
    if constexpr (std::is_same_v<T, __half>) return and_or(pair, 0x00FF00FFU, kMagic<T>);
    // BF16 represents all integers only up to 256. So this computes 128 plus the lower 7 bits,
    // minus 128 or 256.
    return subtract_pairs<T>(and_or(pair, 0x007F007FU, kMagic<T>),
                             and_or(~pair, 0x00800080U, kMagic<T>));
  }
  const uint32_t pair = and_or(words.low[step] >> (4 * i), 0x000F000FU, kMagic<T>);
  if constexpr (kBits == 4) return pair;
  const int field = 2 * (4 * (step % 2) + i);
  const uint32_t word = words.high[step / 2];
  return and_or(field < 4 ? word << (4 - field) : word >> (field - 4), 0x00300030U, pair);
}

// Pair i of E2M1 numbers of a word. The sign of a code becomes the sign of a number of T, its
// exponent the lowest exponent bits, and its mantissa the highest mantissa bit. The number's
// exponent then is too small by the difference of the biases. 0.5 is subnormal in E2M1 and in T, so
// the multiplication by a power of two is exact for all codes.
template <typename T>
__device__ __forceinline__ uint32_t e2m1_pair(uint32_t word, int i) {
  constexpr uint32_t kSigns = 0x80008000U;
  constexpr uint32_t kMagnitudes = 0x01C001C0U;
  constexpr E2m1Place kInBf16 = e2m1_place(0);
  const int sign = kInBf16.sign - e2m1_place(i).sign;
  const int magnitude = kInBf16.magnitude - e2m1_place(i).magnitude;
  uint32_t pair = magnitude < 0 ? word >> -magnitude : word << magnitude;
  pair = sign == magnitude ? pair & (kSigns | kMagnitudes)
                           : and_or(word << sign, kSigns, pair & kMagnitudes);
  if constexpr (std::is_same_v<T, __half>) {
    pair = and_or(pair, kSigns, (pair & kMagnitudes) << 3);
    return multiply_pairs<T>(pair, 0x74007400U);  // 2^14
  }
  return multiply_pairs<T>(pair, 0x7E807E80U);  // 2^126
}

// The lane's A operand of a step: integers minus 2^(bits - 1), or E2M1 numbers.
template <typename T, Values kValues>
__device__ __forceinline__ void unpack_step(const TileWords<bits_of(kValues)>& words, int step,
                                            uint32_t (&a)[4]) {
  constexpr int kBits = bits_of(kValues);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kValues == Values::kE2m1) {
      a[i] = e2m1_pair<T>(words.low[step], i);
      continue;
    }
    a[i] = biased_pair<T, kBits>(words, step, i);
    if constexpr (kBias<T, kBits> != 0) a[i] = subtract_pairs<T>(a[i], kBias<T, kBits>);
  }
}

template <typename T>
__device__ __forceinline__ T load_as(const unsigned char* address) {
  return *reinterpret_cast<const T*>(address);
}

// 2^(exponent - 127). The number of exponent 0 is subnormal.
__device__ __forceinline__ float e8m0_to_float(uint32_t exponent) {
  return __uint_as_float(max(exponent << 23, 0x00400000U));
}

struct GroupScale {
  float scale;
  float minimum;
};

// The scale and the minimum of a panel's row in a group of a block. Only blocks with small groups
// have block scales. Only E2M1 numbers have scales of E8M0.
template <bool kIsE2m1, bool kHasMinimums, bool kMayHaveBlockScales>
__device__ __forceinline__ GroupScale group_scale(const PackedLayout& layout,
                                                  const unsigned char* block, int row, int group) {
  const QuantizedHeader& header = layout.header;
  const int at = group * static_cast<int>(kPanelRows) + row;
  const unsigned char* const scales = block + header.scales;
  GroupScale of = {};
  if constexpr (kIsE2m1) {
    of.scale = e8m0_to_float(scales[at]);
    return of;
  }
  if (kMayHaveBlockScales && layout.format.has_block_scales()) {
    of.scale = to_float(load_as<__half>(block + header.block_scales + 2 * row)) *
               static_cast<float>(load_as<int8_t>(scales + at));
  } else if (layout.format.scales == QuantizedScales::kF32) {
    of.scale = load_as<float>(scales + 4 * at);
  } else {
    const auto bits = load_as<uint16_t>(scales + 2 * at);
    of.scale = layout.format.scales == QuantizedScales::kF16
                   ? to_float(__ushort_as_half(bits))
                   : __uint_as_float(static_cast<uint32_t>(bits) << 16);
  }
  if constexpr (!kHasMinimums) return of;
  if (layout.format.has_zeros) {
    const auto zero = static_cast<float>(block[header.zeros + at]);
    of.minimum = of.scale * (zero - layout.shifted);
  } else {
    const unsigned char* const minimums = block + header.minimums;
    const float minimum = kMayHaveBlockScales && layout.format.has_block_scales()
                              ? to_float(load_as<__half>(block + header.block_minimums + 2 * row)) *
                                    static_cast<float>(minimums[at])
                              : to_float(load_as<__half>(minimums + 2 * at));
    of.minimum = minimum - of.scale * layout.shifted;
  }
  return of;
}

template <Values kValues>
using ValuesConstant = std::integral_constant<Values, kValues>;

// Calls body(ValuesConstant).
template <typename Body>
void with_values(const PackedLayout& layout, const Body& body) {
  if (layout.is_e2m1()) return body(ValuesConstant<Values::kE2m1>());
  const int bits = layout.format.value_bits;
  if (bits == 4) return body(ValuesConstant<Values::kInt4>());
  if (bits == 6) return body(ValuesConstant<Values::kInt6>());
  body(ValuesConstant<Values::kInt8>());
}

}  // namespace quire::cuda::packed
