// AVX-VNNI: like AVX2, but one instruction adds the products of 4 bytes in each of 8 lanes.
#include "cpu/ops/quantized/avx2-inl.h"

namespace quire::cpu::quantized {
namespace {

struct AvxVnni : Avx2 {
  // 12 sums, 2 vectors of weights and an activation use 15 of the 16 registers.
  static constexpr int kRows[] = {6, 3};
  static constexpr bool kTermsAre16Bits = false;
  static constexpr bool kAddsPairs = false;

  template <int kBits>
  static I dot(I sum, I weights, I x) {
    return _mm256_dpbusd_avx_epi32(sum, weights, x);
  }
};

}  // namespace

const Kernel kAvxVnni = {quantize_row<AvxVnni>, run<AvxVnni>};

}  // namespace quire::cpu::quantized
