#include "cpu/ops/quantized/avx2-inl.h"

namespace quire::cpu::quantized {

const Kernel kAvx2 = {quantize_row<Avx2>, run<Avx2>};

}  // namespace quire::cpu::quantized
