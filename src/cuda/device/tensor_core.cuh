// Primitives of kernels that multiply on tensor cores by warps (sm_80 and later).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace quire::cuda {

// Loads four 8x8 matrices of 16-bit elements from shared memory. Lane i gives the address of row
// i % 8 of matrix i / 8. Of each matrix, lane i gets elements i % 4 * 2 and the next one of row
// i / 4.
__device__ __forceinline__ uint4 load_matrices(uint32_t address) {
  uint4 x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// Loads two such matrices; lanes 0 to 15 give the addresses.
__device__ __forceinline__ uint2 load_two_matrices(uint32_t address) {
  uint2 x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(x.x), "=r"(x.y)
               : "r"(address)
               : "memory");
  return x;
}

// Loads four 8x8 matrices of 16-bit elements, transposed.
__device__ __forceinline__ uint4 load_transposed(uint32_t address) {
  uint4 x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// c[16, 8] += a[16, 16] * b[16, 8], accumulated in F32.
template <typename T>
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) = delete;

template <>
__device__ __forceinline__ void mma<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c[16, 8] = a[16, 32] * b[32, 8] of signed bytes.
__device__ __forceinline__ void multiply_bytes(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %10, %10, %10};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(0));
}

// Packs two floats as 16-bit numbers, `low` in the lower half.
template <typename T>
__device__ __forceinline__ uint32_t pack(float low, float high) = delete;

template <>
__device__ __forceinline__ uint32_t pack<__half>(float low, float high) {
  const __half2 x = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&x);
}

template <>
__device__ __forceinline__ uint32_t pack<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 x = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&x);
}

// 2^x to F32's precision, except that subnormal results are 0.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace quire::cuda
