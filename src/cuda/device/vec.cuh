// Several elements in one memory access.
#pragma once

#include <cstdint>

namespace quire::cuda {

// Elements of a type in a thread's widest access, 16 bytes.
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

// Loads 16 bytes that no kernel writes meanwhile and that are read once, so the L1 keeps no copy.
// The L2 fetches the surrounding 256 bytes, which other threads are about to read.
__device__ __forceinline__ uint4 load_once(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

}  // namespace quire::cuda
