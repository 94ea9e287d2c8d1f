// Elements in registers: conversions to and from F32, the type of all computation; vector loads and
// stores; and sums in a fixed order, so that the same input gives the same bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace quire::cuda {

__device__ __forceinline__ float to_float(float x) {
  return x;
}
__device__ __forceinline__ float to_float(__half x) {
  return __half2float(x);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float to_float(__nv_fp8_e4m3 x) {
  return static_cast<float>(x);
}

// Rounds to nearest even; E4M3 saturates to ±448.
template <typename T>
__device__ __forceinline__ T from_float(float x) = delete;
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float x) {
  return __nv_fp8_e4m3(x);
}

// Converts the two E4M3 numbers in the lower half of `bytes`; exact in either type.
template <typename T>
__device__ __forceinline__ uint32_t widen(uint32_t bytes) = delete;
template <>
__device__ __forceinline__ uint32_t widen<__half>(uint32_t bytes) {
  const __half2_raw x =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(bytes), __NV_E4M3);
  return static_cast<uint32_t>(x.x) | static_cast<uint32_t>(x.y) << 16;
}
template <>
__device__ __forceinline__ uint32_t widen<__nv_bfloat16>(uint32_t bytes) {
  const float2 x = __half22float2(
      __half2(__nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(bytes), __NV_E4M3)));
  const __nv_bfloat162 pair = __float22bfloat162_rn(x);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// The number of elements in a thread's widest access, 16 bytes.
template <typename T>
inline constexpr int kWidestVec = 16 / static_cast<int>(sizeof(T));

template <typename T, int kSize>
struct alignas(sizeof(T) * kSize) Vec {
  T v[kSize];
};

// `address` is aligned to the whole vector.
template <int kSize, typename T>
__device__ __forceinline__ Vec<T, kSize> load_vec(const T* address) {
  return *reinterpret_cast<const Vec<T, kSize>*>(address);
}
template <typename T, int kSize>
__device__ __forceinline__ void store_vec(T* address, const Vec<T, kSize>& value) {
  *reinterpret_cast<Vec<T, kSize>*>(address) = value;
}

// The element type of a copy of the KV cache: BF16 for E4M3, otherwise the cache's type.
template <typename T>
using Widened = std::conditional_t<std::is_same_v<T, __nv_fp8_e4m3>, __nv_bfloat16, T>;

// Loads elements of a KV cache for a copy. E4M3 numbers are multiplied by `scale` and rounded to
// BF16; other types are copied unchanged. `address` is aligned to the whole vector.
template <int kSize, typename T>
__device__ __forceinline__ Vec<Widened<T>, kSize> load_widened(const T* address, float scale) {
  if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
    const auto pairs = load_vec<kSize / 2>(reinterpret_cast<const __nv_fp8x2_e4m3*>(address));
    Vec<__nv_bfloat16, kSize> out;
#pragma unroll
    for (int i = 0; i < kSize / 2; ++i) {
      const auto pair = static_cast<float2>(pairs.v[i]);
      out.v[2 * i] = __float2bfloat16_rn(pair.x * scale);
      out.v[2 * i + 1] = __float2bfloat16_rn(pair.y * scale);
    }
    return out;
  } else {
    return load_vec<kSize>(address);
  }
}

// Loads kSize elements with the widest possible accesses, and converts them. `address` is aligned
// to 16 bytes unless kSize is 1.
template <int kSize, typename T>
__device__ __forceinline__ void load_floats(const T* address, float (&out)[kSize]) {
  if constexpr (std::is_same_v<T, __nv_fp8_e4m3> && kSize > 1) {
    // The hardware converts two E4M3 numbers at a time.
    constexpr int kPairs = kWidestVec<__nv_fp8x2_e4m3>;
    static_assert(kSize == 2 * kPairs);
    const auto pairs = load_vec<kPairs>(reinterpret_cast<const __nv_fp8x2_e4m3*>(address));
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const auto pair = static_cast<float2>(pairs.v[i]);
      out[2 * i] = pair.x;
      out[2 * i + 1] = pair.y;
    }
  } else {
    constexpr int kPart = kSize < kWidestVec<T> ? kSize : kWidestVec<T>;
    static_assert(kSize % kPart == 0);
#pragma unroll
    for (int i = 0; i < kSize; i += kPart) {
      const Vec<T, kPart> part = load_vec<kPart>(address + i);
#pragma unroll
      for (int j = 0; j < kPart; ++j) out[i + j] = to_float(part.v[j]);
    }
  }
}

// Loads 16 bytes that are read once and that no running kernel writes, so the L1 does not cache
// them. The L2 fetches the surrounding 256 bytes, because other threads are about to read them.
__device__ __forceinline__ uint4 load_once(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

// Sums over each aligned group of `width` lanes (a power of two up to 32). All lanes of the warp
// call this, and each gets the sum of its group.
__device__ __forceinline__ float warp_sum(float x, int width = 32) {
  for (int distance = width / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, distance);
  }
  return x;
}

// Sums over a one-dimensional thread block of whole warps; every thread gets the sum. Call it once
// per kernel, or with a barrier between two calls.
__device__ __forceinline__ float block_sum(float x) {
  __shared__ float of_warp[32];
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  x = warp_sum(x);
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_sum(lane < num_warps ? of_warp[lane] : 0.0F);
}

// Returns the largest x of a one-dimensional thread block of whole warps to every thread. x must be
// >= 0, because the comparison uses the bits as integers. Call it once per kernel, or with a
// barrier between two calls.
__device__ __forceinline__ float block_max(float x) {
  __shared__ uint32_t of_warp[32];
  const unsigned num_warps = blockDim.x / 32;
  const unsigned lane = threadIdx.x % 32;
  const uint32_t most = __reduce_max_sync(0xFFFFFFFFU, __float_as_uint(x));
  if (lane == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
  return __uint_as_float(__reduce_max_sync(0xFFFFFFFFU, lane < num_warps ? of_warp[lane] : 0U));
}

}  // namespace quire::cuda
