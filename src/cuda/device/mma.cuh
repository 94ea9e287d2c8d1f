// The tensor cores' instruction for a warp and 16-bit numbers.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace quire::cuda {

// sum[16, 8] += a[16, 16] * b[16, 8], in F32; T is F16 or BF16. Lane 4 g + t has, as pairs,
// a0: row g, columns 2 t and 2 t + 1; a1: the same of row g + 8; a2 and a3: 8 columns further.
// b0: rows 2 t and 2 t + 1 of column g; b1: 8 rows further. sum: columns 2 t and 2 t + 1 of row g,
// then of row g + 8. All lanes of the warp call it.
template <typename T>
__device__ __forceinline__ void mma(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                    uint32_t a3, uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

}  // namespace quire::cuda
