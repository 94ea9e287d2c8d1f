// The kernels for x86 processors.
#include <cpuid.h>

#include <vector>

#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/gemm_quantized.h"
#include "cpu/ops/isa.h"

namespace quire::cpu {
namespace {

// Reads CPUID, because __builtin_cpu_supports() of Clang 14 does not support AVX-VNNI.
bool has_avx_vnni() {
  constexpr unsigned kLeaf = 7, kSubleaf = 1, kAvxVnniBit = 1U << 4;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(kLeaf, kSubleaf, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & kAvxVnniBit) != 0;
}

std::vector<QuantizedKernel> find_kernels() {
  std::vector<QuantizedKernel> kernels;
  if (may_use(IsaLevel::kAvx512) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni")) {
    if (amx_int8_usable()) kernels.push_back({kAmxInt8Name, &quantized::kAmxInt8});
    kernels.push_back({"avx512_vnni", &quantized::kAvx512Vnni});
  }
  // Every processor with AVX2 has F16C.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    if (may_use(IsaLevel::kAvx512) && has_avx_vnni()) {
      kernels.push_back({"avx_vnni", &quantized::kAvxVnni});
    }
    kernels.push_back({"avx2", &quantized::kAvx2});
  }
  kernels.push_back({"plain", &quantized::kPlain});
  return kernels;
}

}  // namespace

std::span<const QuantizedKernel> quantized_kernels() {
  static const std::vector<QuantizedKernel> kernels = find_kernels();
  return kernels;
}

}  // namespace quire::cpu
