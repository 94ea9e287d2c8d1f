#include "cpu/ops/quantized/avx2-inl.h"

namespace quire::cpu::quantized {
namespace {

// AVX2 has to widen weights of 8 bits for products with bytes, so products with 16 bits are faster
// for them.
bool gains_by_one_term(const Format& format) {
  return format.value_bits < 8;
}

}  // namespace

const Kernel kAvx2 = {quantize_row<Avx2>, run<Avx2>, nullptr, gains_by_one_term};

}  // namespace quire::cpu::quantized
