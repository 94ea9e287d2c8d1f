// The AMX kernel of quantized products on emulated tiles.
#include "amx/emulated_tiles-inl.h"
#include "cpu/ops/quantized/amx_int8-inl.h"

namespace quire::testing {

extern const cpu::quantized::Kernel kEmulatedAmxInt8;
const cpu::quantized::Kernel kEmulatedAmxInt8 = {
    cpu::quantized::quantize_tile_row, cpu::quantized::run_with_tiles<EmulatedTiles>,
    cpu::quantized::min_tile_rows, cpu::quantized::gains_by_one_term, true};

}  // namespace quire::testing
