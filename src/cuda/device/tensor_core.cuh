// Tensor core instructions, and the instructions that load and store their operands: for warps
// (mma, sm_80 and later), and for warpgroups of four warps (wgmma, Hopper).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace quire::cuda {

// Loads 16 or 8 bytes of shared memory.
__device__ __forceinline__ uint4 load_shared(uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}
__device__ __forceinline__ uint2 load_shared_8(uint32_t address) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ float4 load_shared_floats(uint32_t address) {
  float4 value;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

// Loads four 8x8 matrices of 16-bit elements from shared memory. Lane i passes the address of row i
// % 8 of matrix i / 8. It gets the two elements of row i / 4 of each matrix that begin at column i
// % 4 * 2.
__device__ __forceinline__ uint4 load_matrices(uint32_t address) {
  uint4 x;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// Loads two 8x8 matrices of 16-bit elements; lanes 0 to 15 pass the addresses.
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

// Transposes an 8x8 matrix of 16-bit elements in the registers of a warp: lane i has the two
// elements of row i / 4 that begin at column i % 4 * 2.
__device__ __forceinline__ uint32_t transpose(uint32_t x) {
  uint32_t y = 0;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

// Hopper: stores four 8x8 matrices of 16-bit elements, in the register layout of accumulators, as
// rows of 16 bytes. Lane i passes the address of row i % 8 of matrix i / 8.
template <bool kTransposed>
__device__ __forceinline__ void store_matrices(uint32_t row_address, const uint32_t (&m)[4]) {
  if constexpr (kTransposed) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
        "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
        : "memory");
  } else {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
        "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
        : "memory");
  }
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

// c[16, 8] = a[16, 32] * b[32, 8], with signed bytes as elements.
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

// Returns 2^x to F32's precision, except that subnormal results are 0.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Warpgroup matrix products.
namespace wgmma {

// Describes rows of 64 16-bit elements in shared memory, in TMA's 128-byte swizzle. Each group of 8
// rows has 1024 bytes and is aligned to them. Adding 1 to the descriptor moves the start by 16
// bytes.
__device__ __forceinline__ uint64_t operand_descriptor(uint32_t shared_address) {
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kUnusedOffset = uint64_t{1} << 16;
  return kSwizzle128 | kEightRows | kUnusedOffset | ((shared_address & 0x3FFFF) >> 4);
}

// The descriptor of an operand that begins 16 * units bytes later. The start is in the lower half,
// which does not overflow.
__device__ __forceinline__ uint64_t advanced(uint64_t descriptor, uint32_t units) {
  return (descriptor >> 32) << 32 | (static_cast<uint32_t>(descriptor) + units);
}

// Called before the first product, and again after other code has accessed the accumulators.
__device__ __forceinline__ void begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kPending committed groups are still running.
template <int kPending>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Prevents the compiler from moving uses of the accumulators across this call.
template <int kCount>
__device__ __forceinline__ void keep(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// clang-format off
#define QUIRE_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define QUIRE_D8(i) QUIRE_D4(i), QUIRE_D4(i + 4)
#define QUIRE_D16(i) QUIRE_D8(i), QUIRE_D8(i + 8)
#define QUIRE_D32 QUIRE_D16(0), QUIRE_D16(16)
#define QUIRE_D48 QUIRE_D32, QUIRE_D16(32)
#define QUIRE_D56 QUIRE_D48, QUIRE_D8(48)
#define QUIRE_D64 QUIRE_D48, QUIRE_D16(48)
#define QUIRE_D72 QUIRE_D64, QUIRE_D8(64)
#define QUIRE_D76 QUIRE_D72, QUIRE_D4(72)
#define QUIRE_D80 QUIRE_D64, QUIRE_D16(64)
#define QUIRE_D88 QUIRE_D80, QUIRE_D8(80)
#define QUIRE_D96 QUIRE_D80, QUIRE_D16(80)
#define QUIRE_D112 QUIRE_D96, QUIRE_D16(96)
#define QUIRE_D128 QUIRE_D112, QUIRE_D16(112)
#define QUIRE_NAMES8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define QUIRE_NAMES16 QUIRE_NAMES8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define QUIRE_NAMES32 QUIRE_NAMES16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define QUIRE_NAMES48 QUIRE_NAMES32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define QUIRE_NAMES56 QUIRE_NAMES48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define QUIRE_NAMES64 QUIRE_NAMES48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define QUIRE_NAMES72 QUIRE_NAMES64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define QUIRE_NAMES76 QUIRE_NAMES72 ",%72,%73,%74,%75"
#define QUIRE_NAMES80 QUIRE_NAMES64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define QUIRE_NAMES88 QUIRE_NAMES80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define QUIRE_NAMES96 QUIRE_NAMES80 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define QUIRE_NAMES112 QUIRE_NAMES96 \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define QUIRE_NAMES128 QUIRE_NAMES112 \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// After the accumulators, the operands are A, B, and whether to add to D.
#define QUIRE_WGMMA(n, types, transposed, names, a_name, b_name, adds_name, operands)        \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds_name ", 0;\n"                  \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." types " {" names "}, " a_name \
               ", " b_name ", adds, 1, 1, 0, " transposed ";\n}"                             \
               : operands                                                                    \
               : "l"(a), "l"(b), "r"(adds))
#define QUIRE_WGMMA_SIZES(types)                                                             \
  if constexpr (kN == 32)                                                                    \
    QUIRE_WGMMA("32", types, "0", QUIRE_NAMES16, "%16", "%17", "%18", QUIRE_D16(0));         \
  else if constexpr (kN == 64)                                                               \
    QUIRE_WGMMA("64", types, "0", QUIRE_NAMES32, "%32", "%33", "%34", QUIRE_D32);            \
  else if constexpr (kN == 96)                                                               \
    QUIRE_WGMMA("96", types, "0", QUIRE_NAMES48, "%48", "%49", "%50", QUIRE_D48);            \
  else if constexpr (kN == 128)                                                              \
    QUIRE_WGMMA("128", types, "0", QUIRE_NAMES64, "%64", "%65", "%66", QUIRE_D64);           \
  else if constexpr (kN == 160)                                                              \
    QUIRE_WGMMA("160", types, "0", QUIRE_NAMES80, "%80", "%81", "%82", QUIRE_D80);           \
  else if constexpr (kN == 192)                                                              \
    QUIRE_WGMMA("192", types, "0", QUIRE_NAMES96, "%96", "%97", "%98", QUIRE_D96);           \
  else if constexpr (kN == 224)                                                              \
    QUIRE_WGMMA("224", types, "0", QUIRE_NAMES112, "%112", "%113", "%114", QUIRE_D112);      \
  else                                                                                       \
    QUIRE_WGMMA("256", types, "0", QUIRE_NAMES128, "%128", "%129", "%130", QUIRE_D128)
// With E4M3, K is 32, which has the same number of bytes as K = 16 with 16-bit types. The
// instruction cannot transpose its operands.
#define QUIRE_WGMMA_FP8(n, names, a_name, b_name, adds_name, operands)                       \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds_name ", 0;\n"                  \
               "wgmma.mma_async.sync.aligned.m64n" n "k32.f32.e4m3.e4m3 {" names "}, " a_name \
               ", " b_name ", adds, 1, 1;\n}"                                                \
               : operands                                                                    \
               : "l"(a), "l"(b), "r"(adds))
#define QUIRE_WGMMA_FP8_SIZES                                                                \
  if constexpr (kN == 16)                                                                    \
    QUIRE_WGMMA_FP8("16", QUIRE_NAMES8, "%8", "%9", "%10", QUIRE_D8(0));                     \
  else if constexpr (kN == 32)                                                               \
    QUIRE_WGMMA_FP8("32", QUIRE_NAMES16, "%16", "%17", "%18", QUIRE_D16(0));                 \
  else if constexpr (kN == 64)                                                               \
    QUIRE_WGMMA_FP8("64", QUIRE_NAMES32, "%32", "%33", "%34", QUIRE_D32);                    \
  else if constexpr (kN == 96)                                                               \
    QUIRE_WGMMA_FP8("96", QUIRE_NAMES48, "%48", "%49", "%50", QUIRE_D48);                    \
  else if constexpr (kN == 112)                                                              \
    QUIRE_WGMMA_FP8("112", QUIRE_NAMES56, "%56", "%57", "%58", QUIRE_D56);                   \
  else if constexpr (kN == 128)                                                              \
    QUIRE_WGMMA_FP8("128", QUIRE_NAMES64, "%64", "%65", "%66", QUIRE_D64);                   \
  else if constexpr (kN == 144)                                                              \
    QUIRE_WGMMA_FP8("144", QUIRE_NAMES72, "%72", "%73", "%74", QUIRE_D72);                   \
  else if constexpr (kN == 152)                                                              \
    QUIRE_WGMMA_FP8("152", QUIRE_NAMES76, "%76", "%77", "%78", QUIRE_D76);                   \
  else if constexpr (kN == 160)                                                              \
    QUIRE_WGMMA_FP8("160", QUIRE_NAMES80, "%80", "%81", "%82", QUIRE_D80);                   \
  else if constexpr (kN == 176)                                                              \
    QUIRE_WGMMA_FP8("176", QUIRE_NAMES88, "%88", "%89", "%90", QUIRE_D88);                   \
  else                                                                                       \
    QUIRE_WGMMA_FP8("192", QUIRE_NAMES96, "%96", "%97", "%98", QUIRE_D96)
// Like QUIRE_WGMMA, with A in four registers.
#define QUIRE_WGMMA_REGISTERS(n, types, transposed, names, a_names, b_name, adds_name, operands)        \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds_name ", 0;\n"                   \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." types " {" names "}, {"       \
               a_names "}, " b_name ", adds, 1, 1, " transposed ";\n}"                       \
               : operands                                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds))
#define QUIRE_WGMMA_REGISTER_SIZES(types)                                                              \
  if constexpr (kN == 16)                                                                     \
    QUIRE_WGMMA_REGISTERS("16", types, "0", QUIRE_NAMES8, "%8,%9,%10,%11", "%12", "%13", QUIRE_D8(0));       \
  else if constexpr (kN == 32)                                                                \
    QUIRE_WGMMA_REGISTERS("32", types, "0", QUIRE_NAMES16, "%16,%17,%18,%19", "%20", "%21", QUIRE_D16(0));   \
  else if constexpr (kN == 64)                                                                \
    QUIRE_WGMMA_REGISTERS("64", types, "0", QUIRE_NAMES32, "%32,%33,%34,%35", "%36", "%37", QUIRE_D32);      \
  else                                                                                        \
    QUIRE_WGMMA_REGISTERS("128", types, "0", QUIRE_NAMES64, "%64,%65,%66,%67", "%68", "%69", QUIRE_D64)
// clang-format on

// D [64, kN] += A [64, K] * B [kN, K]^T, or D = A * B^T if `adds` is 0, with A and B in shared
// memory. K is 16, or 32 with E4M3.
template <typename T, int kN>
__device__ __forceinline__ void multiply(float (&d)[kN / 2], uint64_t a, uint64_t b, int adds) {
  if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
    static_assert(kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 152 ||
                  (kN % 16 == 0 && kN >= 112 && kN <= 192));
    QUIRE_WGMMA_FP8_SIZES;
  } else {
    static_assert(kN % 32 == 0 && kN >= 32 && kN <= 256);
    if constexpr (std::is_same_v<T, __half>) {
      QUIRE_WGMMA_SIZES("f16.f16");
    } else {
      QUIRE_WGMMA_SIZES("bf16.bf16");
    }
  }
}

// Like the function above, with A in registers: each warp holds 16 rows of A, in the register
// layout of mma().
template <typename T, int kN>
__device__ __forceinline__ void multiply(float (&d)[kN / 2], const uint32_t (&a)[4], uint64_t b,
                                         int adds = 1) {
  static_assert(kN == 16 || kN == 32 || kN == 64 || kN == 128);
  if constexpr (std::is_same_v<T, __half>) {
    QUIRE_WGMMA_REGISTER_SIZES("f16.f16");
  } else {
    QUIRE_WGMMA_REGISTER_SIZES("bf16.bf16");
  }
}

// Describes the operand B of multiply_transposed(). Its rows have the layout of
// operand_descriptor(), with 64 columns of B each. The next 64 columns begin column_bytes later.
// Adding 1024 / 16 to the descriptor moves the start by 8 rows.
__device__ __forceinline__ uint64_t transposed_descriptor(uint32_t shared_address,
                                                          uint32_t column_bytes) {
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return kSwizzle128 | kEightRows | uint64_t{column_bytes >> 4} << 16 |
         ((shared_address & 0x3FFFF) >> 4);
}

// D [64, 128] += A [64, 16] * B [16, 128], with A in registers.
template <typename T>
__device__ __forceinline__ void multiply_transposed(float (&d)[64], const uint32_t (&a)[4],
                                                    uint64_t b) {
  constexpr int adds = 1;
  if constexpr (std::is_same_v<T, __half>) {
    QUIRE_WGMMA_REGISTERS("128", "f16.f16", "1", QUIRE_NAMES64, "%64,%65,%66,%67", "%68", "%69",
                          QUIRE_D64);
  } else {
    QUIRE_WGMMA_REGISTERS("128", "bf16.bf16", "1", QUIRE_NAMES64, "%64,%65,%66,%67", "%68", "%69",
                          QUIRE_D64);
  }
}

// D [64, 256] += A [64, 16] * B [16, 256], with A and B in shared memory.
template <typename T>
__device__ __forceinline__ void multiply_transposed(float (&d)[128], uint64_t a, uint64_t b) {
  constexpr int adds = 1;
  if constexpr (std::is_same_v<T, __half>) {
    QUIRE_WGMMA("256", "f16.f16", "1", QUIRE_NAMES128, "%128", "%129", "%130", QUIRE_D128);
  } else {
    QUIRE_WGMMA("256", "bf16.bf16", "1", QUIRE_NAMES128, "%128", "%129", "%130", QUIRE_D128);
  }
}

#undef QUIRE_WGMMA_REGISTER_SIZES
#undef QUIRE_WGMMA_REGISTERS
#undef QUIRE_WGMMA_FP8_SIZES
#undef QUIRE_WGMMA_FP8
#undef QUIRE_WGMMA_SIZES
#undef QUIRE_WGMMA

}  // namespace wgmma

}  // namespace quire::cuda
