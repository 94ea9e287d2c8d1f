#include "cpu/ops/amx/kernel.h"
#include "cpu/ops/gemm_amx.h"
#include "ops_fixture.h"

namespace quire::testing {

extern const cpu::amx::Kernel kEmulatedAmx;

const cpu::amx::Kernel* emulated_amx() {
  return cpu::amx_avx512_usable() ? &kEmulatedAmx : nullptr;
}

}  // namespace quire::testing
