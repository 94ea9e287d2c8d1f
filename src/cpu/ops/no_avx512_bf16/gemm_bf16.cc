// Replaces the BF16 kernel on architectures without AVX-512.
#include "cpu/ops/gemm_bf16.h"

#include "base/check.h"

namespace quire::cpu {

bool avx512_bf16_usable() {
  return false;
}

Status Bf16Scratch::reserve(int64_t, int) {
  return unimplemented("[ops] this build has no AVX-512");
}

int64_t Bf16Scratch::num_bytes(int64_t, int) {
  return 0;
}

void linear_bf16(std::span<const RowGroup>, const float*, int, float*, ThreadPool&,
                 const Bf16Scratch&) {
  QUIRE_CHECK(false, "[ops] this build has no AVX-512");
}

}  // namespace quire::cpu
