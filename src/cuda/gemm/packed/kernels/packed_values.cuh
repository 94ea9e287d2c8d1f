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

// The lane's A operand of a step: values minus 2^(bits - 1).
template <typename T, int kBits>
__device__ __forceinline__ void unpack_step(const TileWords<kBits>& words, int step,
                                            uint32_t (&a)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    a[i] = biased_pair<T, kBits>(words, step, i);
    if constexpr (kBias<T, kBits> != 0) a[i] = subtract_pairs<T>(a[i], kBias<T, kBits>);
  }
}

template <typename T>
__device__ __forceinline__ T load_as(const unsigned char* address) {
  return *reinterpret_cast<const T*>(address);
}

struct GroupScale {
  float scale;
  float minimum;
};

// The scale and the minimum of a panel's row in a group of a block. Only blocks with small groups
// have block scales.
template <bool kHasMinimums, bool kMayHaveBlockScales>
__device__ __forceinline__ GroupScale group_scale(const PackedLayout& layout,
                                                  const unsigned char* block, int row, int group) {
  const QuantizedHeader& header = layout.header;
  const int at = group * static_cast<int>(kPanelRows) + row;
  const unsigned char* const scales = block + header.scales;
  GroupScale of = {};
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

template <typename Body>
void with_bits(int bits, const Body& body) {
  if (bits == 4) return body(std::integral_constant<int, 4>());
  if (bits == 6) return body(std::integral_constant<int, 6>());
  body(std::integral_constant<int, 8>());
}

}  // namespace quire::cuda::packed
