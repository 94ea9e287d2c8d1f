// Replaces AMX's emulation on architectures without AVX-512.
#include "ops_fixture.h"

namespace quire::testing {

const cpu::amx::Kernel* emulated_amx() {
  return nullptr;
}

}  // namespace quire::testing
