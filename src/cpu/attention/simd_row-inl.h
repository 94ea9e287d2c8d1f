// Row helpers that tiles and merges share.
#include <limits>

#include "cpu/attention/simd_load-inl.h"
#include "hwy/contrib/math/math-inl.h"

#if defined(QUIRE_CPU_ATTENTION_SIMD_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_CPU_ATTENTION_SIMD_ROW_INL_H_
#undef QUIRE_CPU_ATTENTION_SIMD_ROW_INL_H_
#else
#define QUIRE_CPU_ATTENTION_SIMD_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace quire::cpu::HWY_NAMESPACE {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

HWY_INLINE float exp_scalar(float x) {
  const FloatTag d;
  return hn::GetLane(hn::Exp(d, hn::Set(d, x)));
}

HWY_INLINE void scale_by(float factor, int64_t count, float* HWY_RESTRICT values) {
  const FloatTag d;
  const Floats lanes = hn::Set(d, factor);
  for (int64_t i = 0; i < count; i += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, values + i), lanes), d, values + i);
  }
}

}  // namespace quire::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
