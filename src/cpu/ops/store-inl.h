// Converts F32 to the cache's formats with vector instructions, with the same bits as
// tensor/dtype.h. The conversion uses integer arithmetic and one exact rounding addition, so that
// every target rounds in the same way.
#if defined(QUIRE_CPU_OPS_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_CPU_OPS_STORE_INL_H_
#undef QUIRE_CPU_OPS_STORE_INL_H_
#else
#define QUIRE_CPU_OPS_STORE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using StoreD = hn::ScalableTag<float>;
using StoreU32 = hn::RebindToUnsigned<StoreD>;
using StoreBits = hn::Vec<StoreU32>;

// The bits (without sign) of |x| in a small format with kMantissa mantissa bits and exponent bias
// kBias. For normal results, changes the exponent bias and rounds the remaining bits to nearest
// even. For subnormal results, adds a power of two whose ulp is the format's smallest step, so that
// the addition rounds the value.
template <int kMantissa, int kBias>
HWY_INLINE StoreBits round_magnitude(StoreBits magnitude) {
  const StoreD d;
  const StoreU32 du;
  constexpr int kShift = 23 - kMantissa;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  constexpr uint32_t kHalf = (1U << (kShift - 1)) - 1U;
  const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(du, 1U));
  const auto rounded = hn::Add(hn::Add(magnitude, hn::Set(du, kHalf)), odd);
  const auto normal = hn::ShiftRight<kShift>(hn::Sub(rounded, hn::Set(du, kRebias)));
  // The smallest step is 2^(1 - kBias - kMantissa); the addend is 23 binary places above it.
  const auto magic = hn::Set(du, static_cast<uint32_t>(127 + 1 - kBias - kMantissa + 23) << 23);
  const auto summed = hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, magic));
  const auto subnormal = hn::Sub(hn::BitCast(du, summed), magic);
  const auto is_normal =
      hn::Gt(magnitude, hn::Set(du, (static_cast<uint32_t>(127 + 1 - kBias) << 23) - 1U));
  return hn::IfThenElse(is_normal, normal, subnormal);
}

// Replaces the results for magnitudes from `over` on, and for NaN.
HWY_INLINE StoreBits finish(StoreBits bits, StoreBits magnitude, uint32_t over, uint32_t over_bits,
                            uint32_t nan_bits) {
  const StoreU32 du;
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, over - 1U)), hn::Set(du, over_bits), bits);
  const auto is_nan = hn::Gt(magnitude, hn::Set(du, 0x7F800000U));
  return hn::IfThenElse(is_nan, hn::Set(du, nan_bits), bits);
}

HWY_INLINE StoreBits to_f16(StoreBits x) {
  const StoreU32 du;
  const auto magnitude = hn::And(x, hn::Set(du, 0x7FFFFFFFU));
  const auto sign = hn::And(hn::ShiftRight<16>(x), hn::Set(du, 0x8000U));
  // 65520 is the first number that rounds to infinity.
  return hn::Or(
      sign, finish(round_magnitude<10, 15>(magnitude), magnitude, 0x477FF000U, 0x7C00U, 0x7E00U));
}

HWY_INLINE StoreBits to_e4m3(StoreBits x) {
  const StoreU32 du;
  const auto magnitude = hn::And(x, hn::Set(du, 0x7FFFFFFFU));
  const auto sign = hn::And(hn::ShiftRight<24>(x), hn::Set(du, 0x80U));
  // 448 and larger values saturate.
  return hn::Or(sign,
                finish(round_magnitude<3, 7>(magnitude), magnitude, 0x43E00000U, 0x7EU, 0x7FU));
}

HWY_INLINE StoreBits to_bf16(StoreBits x) {
  const StoreU32 du;
  const auto high = hn::ShiftRight<16>(x);
  const auto odd = hn::And(high, hn::Set(du, 1U));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(x, hn::Set(du, 0x7FFFU)), odd));
  const auto is_nan = hn::Gt(hn::And(x, hn::Set(du, 0x7FFFFFFFU)), hn::Set(du, 0x7F800000U));
  return hn::IfThenElse(is_nan, hn::Or(high, hn::Set(du, 0x40U)), rounded);
}

// out[i] = convert(x[i] / scale). The tail uses the scalar conversion, which gives the same bits.
template <class T, class Convert, class ConvertOne>
HWY_INLINE void store_converted(const float* x, int64_t n, float scale, T* out,
                                const Convert& convert, const ConvertOne& convert_one) {
  const StoreD d;
  const StoreU32 du;
  const hn::Rebind<T, StoreD> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto scaled = hn::Div(hn::LoadU(d, x + i), hn::Set(d, scale));
    hn::StoreU(hn::TruncateTo(dt, convert(hn::BitCast(du, scaled))), dt, out + i);
  }
  for (; i < n; ++i) out[i] = convert_one(x[i] / scale);
}

// Returns the largest magnitude of n numbers, or a NaN if one of them is a NaN.
HWY_INLINE float largest_magnitude(const float* x, int64_t n) {
  const StoreD d;
  const StoreU32 du;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Magnitudes have the same order as their bits, with NaN above infinity.
  StoreBits largest = hn::Zero(du);
  const auto magnitude_mask = hn::Set(du, 0x7FFFFFFFU);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(du, hn::LoadU(d, x + i));
    largest = hn::Max(largest, hn::And(bits, magnitude_mask));
  }
  uint32_t most = hn::GetLane(hn::MaxOfLanes(du, largest));
  for (; i < n; ++i) most = std::max(most, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU);
  return std::bit_cast<float>(most);
}

// Quantizes n numbers with one scale, as tensor/dtype.h specifies, and returns the scale.
HWY_INLINE HWY_MAYBE_UNUSED float store_i8(const float* x, int64_t n, int8_t* out) {
  const StoreD d;
  const hn::Rebind<int8_t, StoreD> d8;
  const float scale = i8_scale(largest_magnitude(x, n));
  if (!(scale > 0)) {
    std::fill_n(out, n, int8_t{0});
    return scale;
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto quotient = hn::Div(hn::LoadU(d, x + i), hn::Set(d, scale));
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(quotient)), d8, out + i);
  }
  for (; i < n; ++i) out[i] = f32_to_i8(x[i], scale);
  return scale;
}

// Stores into elements [at, at + n) of a cache of type dtype. dtype must not be kI8. Only FP8 uses
// the scale.
HWY_INLINE HWY_MAYBE_UNUSED void store_as(const float* x, int64_t n, DType dtype,
                                          const float* scale, void* cache, int64_t at) {
  switch (dtype) {
    case DType::kF16:
      return store_converted(
          x, n, 1.0F, static_cast<uint16_t*>(cache) + at,
          [](StoreBits v) HWY_ATTR { return to_f16(v); }, f32_to_f16);
    case DType::kBF16:
      return store_converted(
          x, n, 1.0F, static_cast<uint16_t*>(cache) + at,
          [](StoreBits v) HWY_ATTR { return to_bf16(v); }, f32_to_bf16);
    case DType::kF8E4M3:
      return store_converted(
          x, n, scale == nullptr ? 1.0F : *scale, static_cast<uint8_t*>(cache) + at,
          [](StoreBits v) HWY_ATTR { return to_e4m3(v); }, f32_to_e4m3);
    default:
      std::copy(x, x + n, static_cast<float*>(cache) + at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#endif  // QUIRE_CPU_OPS_STORE_INL_H_
