// Warpgroup matrix products (wgmma) with A in registers.
#pragma once

#include "cuda/device/wgmma.cuh"

namespace quire::cuda::wgmma {

// clang-format off
#define QUIRE_D8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
  "+f"(d[i + 6]), "+f"(d[i + 7])
#define QUIRE_NAMES8 "%0,%1,%2,%3,%4,%5,%6,%7"
// The operands behind the accumulators are A and B.
#define QUIRE_WGMMA(n, types, names, a_names, b_name, adds_name, operands)                    \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds_name ", 0;\n"                   \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." types " {" names "}, {"       \
               a_names "}, " b_name ", adds, 1, 1, 0;\n}"                                     \
               : operands                                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds))
#define QUIRE_WGMMA_SIZES(types)                                                              \
  if constexpr (kN == 16)                                                                     \
    QUIRE_WGMMA("16", types, QUIRE_NAMES8, "%8,%9,%10,%11", "%12", "%13", QUIRE_D8(0));       \
  else if constexpr (kN == 32)                                                                \
    QUIRE_WGMMA("32", types, QUIRE_NAMES16, "%16,%17,%18,%19", "%20", "%21", QUIRE_D16(0));   \
  else if constexpr (kN == 64)                                                                \
    QUIRE_WGMMA("64", types, QUIRE_NAMES32, "%32,%33,%34,%35", "%36", "%37", QUIRE_D32);      \
  else                                                                                        \
    QUIRE_WGMMA("128", types, QUIRE_NAMES64, "%64,%65,%66,%67", "%68", "%69", QUIRE_D64)
// clang-format on

// D += A * B^T, or D = A * B^T if `adds` is 0. Each warp has 16 rows of A, held as mma() of
// device/tensor_core.cuh holds them.
template <typename T, int kN>
__device__ __forceinline__ void multiply(float (&d)[kN / 2], const uint32_t (&a)[4], uint64_t b,
                                         int adds = 1) {
  static_assert(kN == 16 || kN == 32 || kN == 64 || kN == 128);
  if constexpr (std::is_same_v<T, __half>) {
    QUIRE_WGMMA_SIZES("f16.f16");
  } else {
    QUIRE_WGMMA_SIZES("bf16.bf16");
  }
}

#undef QUIRE_WGMMA_SIZES
#undef QUIRE_WGMMA
#undef QUIRE_NAMES8
#undef QUIRE_D8

}  // namespace quire::cuda::wgmma
