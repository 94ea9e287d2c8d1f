#include "cpu/ops/quantized/amx_int8-inl.h"

namespace quire::cpu::quantized {

const Kernel kAmxInt8 = {quantize_tile_row, run_with_tiles<amx::Tiles>, min_tile_rows,
                         gains_by_one_term, true};

}  // namespace quire::cpu::quantized
