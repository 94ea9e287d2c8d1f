// Loads elements of the cache as F32 lanes. Every conversion is exact, so results do not depend on
// where it happens (in a register, or once into a block that rows share).
#include <cstring>

#include "cpu/attention/simd_kernels.h"
#include "hwy/highway.h"

#if defined(QUIRE_CPU_ATTENTION_SIMD_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_CPU_ATTENTION_SIMD_LOAD_INL_H_
#undef QUIRE_CPU_ATTENTION_SIMD_LOAD_INL_H_
#else
#define QUIRE_CPU_ATTENTION_SIMD_LOAD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace quire::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;
// A compile-time constant: targets of variable width (SVE, RVV) are not compiled.
constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
static_assert(kMaxLanes % kLanes == 0);

struct Fp8 {
  uint8_t bits;
};

HWY_INLINE Floats load_f32(const float* p) {
  return hn::LoadU(FloatTag(), p);
}

HWY_INLINE Floats load_f32(const hwy::float16_t* p) {
  const hn::Rebind<hwy::float16_t, FloatTag> d;
  return hn::PromoteTo(FloatTag(), hn::LoadU(d, p));
}

HWY_INLINE Floats load_f32(const hwy::bfloat16_t* p) {
  const hn::Rebind<hwy::bfloat16_t, FloatTag> d;
  return hn::PromoteTo(FloatTag(), hn::LoadU(d, p));
}

// Converts E4M3 to F32 by a shift and a new exponent bias. A subnormal is first built as a normal
// number with the lowest exponent; then its implied one is subtracted, exactly.
HWY_INLINE Floats load_f32(const Fp8* p) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<uint8_t, FloatTag> du8;
  const auto bits = hn::PromoteTo(du, hn::LoadU(du8, &p->bits));
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7F));
  const auto subnormal = hn::Lt(magnitude, hn::Set(du, 0x08));
  const auto lifted = hn::IfThenElse(subnormal, hn::Or(magnitude, hn::Set(du, 0x08)), magnitude);
  const auto rebiased = hn::Add(hn::ShiftLeft<20>(lifted), hn::Set(du, 120U << 23));
  const Floats raw = hn::BitCast(d, rebiased);
  const auto fsubnormal = hn::RebindMask(d, subnormal);
  const Floats value = hn::IfThenElse(fsubnormal, hn::Sub(raw, hn::Set(d, 0x1p-6F)), raw);
  const auto is_nan = hn::RebindMask(d, hn::Eq(magnitude, hn::Set(du, 0x7F)));
  const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(du, 0x80)));
  return hn::IfThenElse(is_nan, hn::NaN(d), hn::Or(value, hn::BitCast(d, sign)));
}

// Loads a page's tokens as F32 rows of pad_lanes(dim) elements, padded with zeros.
template <typename T>
HWY_INLINE void load_block(const T* from, int64_t token_stride, int dim, int num_tokens,
                           float* HWY_RESTRICT to) {
  const FloatTag d;
  const int whole = dim / kLanes * kLanes;
  const auto padded = static_cast<int>(pad_lanes(dim));
  for (int token = 0; token < num_tokens; ++token, from += token_stride, to += padded) {
    for (int i = 0; i < whole; i += kLanes) hn::Store(load_f32(from + i), d, to + i);
    if (whole == padded) continue;
    for (int i = whole; i < padded; i += kLanes) hn::Store(hn::Zero(d), d, to + i);
    if (whole == dim) continue;
    T tail[kMaxLanes] = {};
    std::memcpy(tail, from + whole, static_cast<size_t>(dim - whole) * sizeof(T));
    hn::Store(load_f32(tail), d, to + whole);
  }
}

}  // namespace quire::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
