// The kernel for all other processors: one feature at a time.
#include <cmath>

#include "cpu/ops/quantized/kernel-inl.h"
#include "tensor/dtype.h"

namespace quire::cpu::quantized {
namespace {

struct Plain {
  using F = float;
  using I = uint32_t;
  static constexpr int kLanes = 1;
  static constexpr int kVecs = 1;
  static constexpr int kRows[] = {1, 1};
  static constexpr bool kTermsAre16Bits = false;
  static constexpr bool kSpreadsPrefetches = false;
  static constexpr bool kAddsPairs = false;
  static constexpr bool kIsE2m1 = false;

  static I zero() { return 0; }
  static I load(const std::byte* from) {
    I bytes = 0;
    __builtin_memcpy(&bytes, from, sizeof(bytes));
    return bytes;
  }
  static I broadcast(const std::byte* from) { return load(from); }
  static I and_bytes(I a, char mask) { return a & (0x01010101U * static_cast<uint32_t>(mask)); }
  static I look_up(const uint8_t* table, I codes) {
    I bytes = 0;
    for (int shift = 0; shift < 32; shift += 8) bytes |= I{table[codes >> shift & 0xF]} << shift;
    return bytes;
  }
  static I or_bytes(I a, I b) { return a | b; }
  template <int kBits>  // shift to the right; negative: to the left
  static I shift(I a) {
    return kBits < 0 ? a << (kBits < 0 ? -kBits : 0) : a >> (kBits < 0 ? 0 : kBits);
  }
  static I set1_int(int32_t a) { return static_cast<I>(a); }
  static I add(I a, I b) { return a + b; }
  static I subtract(I a, I b) { return a - b; }
  static I multiply(I a, I b) { return a * b; }
  static I widen_u8(const std::byte* from) { return static_cast<I>(*from); }
  template <int kBits>
  static I dot(I sum, I weights, I x) {
    for (int byte = 0; byte < 4; ++byte) {
      const int value = static_cast<int>((weights >> (8 * byte)) & 0xFF);
      sum += static_cast<uint32_t>(value * static_cast<int8_t>(x >> (8 * byte)));
    }
    return sum;
  }
  static void keep(I& a) { asm("" : "+r"(a)); }
  static F to_float(I a) { return static_cast<float>(static_cast<int32_t>(a)); }
  static F set1(float a) { return a; }
  static F mul(F a, F b) { return a * b; }
  static F mul_add(F a, F b, F c) { return std::fma(a, b, c); }
  static F neg_mul_add(F a, F b, F c) { return std::fma(-a, b, c); }
  static F load_f32(const float* from) { return *from; }
  static F load_f16(const std::byte* from) { return f16_to_f32(load_16(from)); }
  static F load_bf16(const std::byte* from) { return bf16_to_f32(load_16(from)); }
  static uint16_t load_16(const std::byte* from) {
    uint16_t bits = 0;
    __builtin_memcpy(&bits, from, sizeof(bits));
    return bits;
  }
  static F half_e8m0(const std::byte* from) {
    const uint32_t bits = half_e8m0_bits(static_cast<uint32_t>(*from));
    F number = 0;
    __builtin_memcpy(&number, &bits, sizeof(number));
    return number;
  }
  static F load_i8(const std::byte* from) { return static_cast<float>(static_cast<int8_t>(*from)); }
  static void store(F a, float* to) { *to = a; }
};

}  // namespace

const Kernel kPlain = {quantize_row<Plain>, run<Plain>};

}  // namespace quire::cpu::quantized
