// RMSNorm of one row, compiled once per Highway target.
//
// Numerics: squares are summed in F32, in four vectors of partial sums that are added in a fixed
// order, which depends only on the row's length.
#if defined(QUIRE_CPU_OPS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_CPU_OPS_NORM_INL_H_
#undef QUIRE_CPU_OPS_NORM_INL_H_
#else
#define QUIRE_CPU_OPS_NORM_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE HWY_MAYBE_UNUSED float sum_of_squares(const float* HWY_RESTRICT x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  const auto square = [&](int64_t i, auto sum) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    return hn::MulAdd(v, v, sum);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    sum0 = square(i, sum0);
    sum1 = square(i + lanes, sum1);
    sum2 = square(i + 2 * lanes, sum2);
    sum3 = square(i + 3 * lanes, sum3);
  }
  for (; i + lanes <= n; i += lanes) sum0 = square(i, sum0);
  const auto sums = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  float total = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) total += x[i] * x[i];
  return total;
}

// out = x * scale * weight; out may be x.
HWY_INLINE HWY_MAYBE_UNUSED void scale_row(const float* x, float scale, const float* weight,
                                           int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), scales);
    hn::StoreU(hn::Mul(scaled, hn::LoadU(d, weight + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

HWY_INLINE HWY_MAYBE_UNUSED void rms_norm(const float* x, const float* weight, float eps, int64_t n,
                                          float* out) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  scale_row(x, 1.0F / std::sqrt(mean + eps), weight, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#endif  // QUIRE_CPU_OPS_NORM_INL_H_
