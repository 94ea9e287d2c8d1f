#include "cpu/ops/quantized/avx512_vnni-inl.h"

namespace quire::cpu::quantized {

const Kernel kAvx512Vnni = {quantize_row<Avx512Vnni>, run<Avx512Vnni>};

}  // namespace quire::cpu::quantized
