// Replaces the AMX kernel on architectures without AMX.
#include "cpu/ops/gemm_amx.h"

#include "base/check.h"

namespace quire::cpu {

bool amx_usable() {
  return false;
}

const amx::Kernel* amx_kernel() {
  return nullptr;
}

bool amx_avx512_usable() {
  return false;
}

Status AmxScratch::reserve(int64_t, int) {
  return unimplemented("[ops] this build has no AMX");
}

int64_t AmxScratch::num_bytes(int64_t, int) {
  return 0;
}

uint16_t* AmxScratch::weights(int) const {
  return nullptr;
}

bool amx_encode_f16(uint16_t*, int64_t) {
  return false;
}

void linear_amx(std::span<const RowGroup>, const amx::Kernel&, const float*, int, float*,
                ThreadPool&, const AmxScratch&) {
  QUIRE_CHECK(false, "[ops] this build has no AMX");
}

}  // namespace quire::cpu
