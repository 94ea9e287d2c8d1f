// The gated activations, and the soft cap of logits.
//
// Numerics: tanh GELU is computed as x / (1 + exp(-2 u)), because (1 + tanh(u)) / 2 is the logistic
// function of 2 u; this keeps the relative accuracy of small results. exp(y) = 2^n p(r), where n =
// round(y / ln 2), r = y - n ln 2 is computed in two steps (Cody and Waite), and p is a degree-6
// polynomial close to exp's Taylor series on |r| <= ln2 / 2, below 2 ulp. The tail of a row runs
// through the same vector code in a padded copy, so an element's bits do not depend on its
// position.
#include <algorithm>
#include <array>

#include "cpu/ops/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/activation.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V y) {
  // Within these bounds 2^n is a normal number, and 1 + exp(y) has long reached its limits.
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

// The exponent y in: activation = gate / (1 + exp(y)).
template <Activation kActivation, class D, class V = hn::Vec<D>>
HWY_INLINE V exponent(D d, V gate) {
  if constexpr (kActivation == Activation::kSilu) {
    return hn::Neg(gate);
  } else {
    constexpr float kLinear = -1.5957691216F;   // -2 sqrt(2 / pi)
    constexpr float kCubic = -0.071354816273F;  // cubic term: the same factor times 0.044715
    const V slope = hn::MulAdd(hn::Set(d, kCubic), hn::Mul(gate, gate), hn::Set(d, kLinear));
    return hn::Mul(gate, slope);
  }
}

template <Activation kActivation>
HWY_INLINE void gated_row(const float* gate, const float* up, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto product = [&](auto g, auto u) HWY_ATTR {
    const auto denominator = hn::Add(hn::Set(d, 1.0F), exp_of(d, exponent<kActivation>(d, g)));
    return hn::Mul(hn::Div(g, denominator), u);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(product(hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, out + i);
  }
  if (i == n) return;
  HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> g = {};
  HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> u = {};
  std::copy(gate + i, gate + n, g.begin());
  std::copy(up + i, up + n, u.begin());
  hn::Store(product(hn::Load(d, g.data()), hn::Load(d, u.data())), d, g.data());
  std::copy(g.begin(), g.begin() + (n - i), out + i);
}

void silu_row(const float* gate, const float* up, int64_t n, float* out) {
  gated_row<Activation::kSilu>(gate, up, n, out);
}

void gelu_row(const float* gate, const float* up, int64_t n, float* out) {
  gated_row<Activation::kGeluTanh>(gate, up, n, out);
}

void cap_row(float cap, float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto caps = hn::Set(d, cap);
  const auto capped = [&](auto v) HWY_ATTR { return hn::Mul(caps, hn::Tanh(d, hn::Div(v, caps))); };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(capped(hn::LoadU(d, x + i)), d, x + i);
  if (i == n) return;
  HWY_ALIGN std::array<float, HWY_MAX_BYTES / sizeof(float)> tail = {};
  std::copy(x + i, x + n, tail.begin());
  hn::Store(capped(hn::Load(d, tail.data())), d, tail.data());
  std::copy(tail.begin(), tail.begin() + (n - i), x + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(silu_row);
HWY_EXPORT(gelu_row);
HWY_EXPORT(cap_row);

void gated_mul_row(Activation activation, const float* gate, const float* up, int64_t n,
                   float* out) {
  switch (activation) {
    case Activation::kSilu:
      return HWY_DYNAMIC_DISPATCH(silu_row)(gate, up, n, out);
    case Activation::kGeluTanh:
      return HWY_DYNAMIC_DISPATCH(gelu_row)(gate, up, n, out);
  }
}

void soft_cap_row(float cap, float* x, int64_t n) {
  HWY_DYNAMIC_DISPATCH(cap_row)(cap, x, n);
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
