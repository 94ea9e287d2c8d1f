#include "cpu/ops/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/norm.cc"
#include <hwy/foreach_target.h>
//
#include "cpu/ops/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

void norm_row(const float* x, const float* weight, float eps, int64_t n, float* out) {
  rms_norm(x, weight, eps, n, out);
}

void add_norm_row(float* residual, const float* delta, const float* weight, float eps, int64_t n,
                  float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, residual + i), hn::LoadU(d, delta + i)), d, residual + i);
  }
  for (; i < n; ++i) residual[i] += delta[i];
  rms_norm(residual, weight, eps, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(norm_row);
HWY_EXPORT(add_norm_row);

void rms_norm_row(const float* x, const float* weight, float eps, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(norm_row)(x, weight, eps, n, out);
}

void add_rms_norm_row(float* residual, const float* delta, const float* weight, float eps,
                      int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(add_norm_row)(residual, delta, weight, eps, n, out);
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
