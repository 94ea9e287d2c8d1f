// The columns of a head's state are independent of each other. So all tokens update a tile of
// columns in turn, and the tile stays in a near cache: it has 32 KiB with AVX-512 and 128 rows.
#include "cpu/ops/delta_state.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/delta_state.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One token of kNumVectors vectors of columns, from column `first` on.
template <int kNumVectors, class D>
void update_columns(D d, const DeltaHead& head, int token, int64_t first) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* const q = head.q + token * head.stride;
  const float* const k = head.k + token * head.stride;
  const float* const v = head.v + token * head.stride + first;
  const V decay = hn::Set(d, head.decay[token]);
  const V beta = hn::Set(d, head.beta[token]);
  std::array<V, kNumVectors> delta;
  delta.fill(hn::Zero(d));
  const float* row = head.state + first;
  for (int i = 0; i < head.k_dim; ++i, row += head.v_dim) {
    const V key = hn::Set(d, k[i]);
    for (int n = 0; n < kNumVectors; ++n) {
      delta[n] = hn::MulAdd(key, hn::LoadU(d, row + n * lanes), delta[n]);
    }
  }
  for (int n = 0; n < kNumVectors; ++n) {
    delta[n] = hn::Mul(beta, hn::NegMulAdd(decay, delta[n], hn::LoadU(d, v + n * lanes)));
  }
  std::array<V, kNumVectors> out;
  out.fill(hn::Zero(d));
  float* next = head.state + first;
  for (int i = 0; i < head.k_dim; ++i, next += head.v_dim) {
    const V key = hn::Set(d, k[i]);
    const V query = hn::Set(d, q[i]);
    for (int n = 0; n < kNumVectors; ++n) {
      const V decayed = hn::Mul(decay, hn::LoadU(d, next + n * lanes));
      const V updated = hn::MulAdd(key, delta[n], decayed);
      hn::StoreU(updated, d, next + n * lanes);
      out[n] = hn::MulAdd(query, updated, out[n]);
    }
  }
  float* const to = head.out + int64_t{token} * head.v_dim + first;
  for (int n = 0; n < kNumVectors; ++n) hn::StoreU(out[n], d, to + n * lanes);
}

// Updates whole tiles of columns from `first` on. Returns the first column that is left for
// narrower tiles.
template <int kNumVectors, class D>
int64_t update_tiles(D d, const DeltaHead& head, int64_t first) {
  const auto width = static_cast<int64_t>(hn::Lanes(d)) * kNumVectors;
  for (; first + width <= head.v_dim; first += width) {
    for (int t = 0; t < head.num_tokens; ++t) update_columns<kNumVectors>(d, head, t, first);
  }
  return first;
}

void run_head(const DeltaHead& head) {
  const hn::ScalableTag<float> d;
  int64_t first = update_tiles<4>(d, head, 0);
  first = update_tiles<1>(d, head, first);
  update_tiles<1>(hn::CappedTag<float, 1>(), head, first);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(run_head);

void run_delta_head(const DeltaHead& head) {
  HWY_DYNAMIC_DISPATCH(run_head)(head);
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
