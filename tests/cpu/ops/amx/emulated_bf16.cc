// The AMX kernel of 16-bit weights on emulated tiles.
#include "amx/emulated_tiles-inl.h"
#include "cpu/ops/amx/kernel-inl.h"

namespace quire::testing {

extern const cpu::amx::Kernel kEmulatedAmx;
const cpu::amx::Kernel kEmulatedAmx = {cpu::amx::run_with_tiles<EmulatedTiles>,
                                       EmulatedTiles::release};

}  // namespace quire::testing
