// SiLU(gate) * up.
//
// Numerics: exp(y) = 2^n p(r) with n = round(y / ln 2), r = y - n ln 2 in two steps (Cody and
// Waite) and p the degree-6 Taylor-like polynomial of exp on |r| <= ln2 / 2, below 2 ulp. The tail
// of a row goes through the same vector code in a padded copy, so an element's bits do not depend
// on its place.
#include <algorithm>
#include <array>

#include "cpu/ops/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/silu.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V y) {
  // Within these bounds 2^n is a normal number, and 1 + exp(y) is long at its limits.
  y = hn::Min(hn::Max(y, hn::Set(d, -87.0F)), hn::Set(d, 88.0F));
  const V n = hn::Round(hn::Mul(y, hn::Set(d, 1.44269504F)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), y);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  V p = hn::Set(d, 1.0F / 720.0F);
  for (const float c : {1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F}) {
    p = hn::MulAdd(p, r, hn::Set(d, c));
  }
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, n));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V silu_mul(D d, V gate, V up) {
  const V denominator = hn::Add(hn::Set(d, 1.0F), exp_of(d, hn::Neg(gate)));
  return hn::Mul(hn::Div(gate, denominator), up);
}

void silu_row(const float* gate, const float* up, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(silu_mul(d, hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> g = {};
  HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> u = {};
  std::copy(gate + i, gate + n, g.begin());
  std::copy(up + i, up + n, u.begin());
  hn::Store(silu_mul(d, hn::Load(d, g.data()), hn::Load(d, u.data())), d, g.data());
  std::copy(g.begin(), g.begin() + (n - i), out + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(silu_row);

void silu_mul_row(const float* gate, const float* up, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(silu_row)(gate, up, n, out);
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
