#include "cpu/ops/quantized/avx2-inl.h"

namespace quire::cpu::quantized {
namespace {

// Bytes of 8 bits have to be widened for products with bytes, and products with 16 bits are faster.
bool gains_by_one_term(const Format& format) {
  return format.value_bits < 8;
}

}  // namespace

const Kernel kAvx2 = {quantize_row<Avx2>, run<Avx2>, nullptr, gains_by_one_term};

}  // namespace quire::cpu::quantized
