// Products and conversions of one block of tokens in vectors: loading the cache as F32, q · k, and
// weights · v. Every conversion is exact, so results do not depend on whether each row converts a
// value in a register, or rows share a converted block.
#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/attention/simd_kernels.h"
#include "hwy/contrib/math/math-inl.h"

// Highway includes this file once per target, so the include guard toggles.
#if defined(QUIRE_CPU_ATTENTION_SIMD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_CPU_ATTENTION_SIMD_BLOCK_INL_H_
#undef QUIRE_CPU_ATTENTION_SIMD_BLOCK_INL_H_
#else
#define QUIRE_CPU_ATTENTION_SIMD_BLOCK_INL_H_
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
// number with the lowest exponent. Then its implicit leading one is subtracted, which is exact.
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

HWY_INLINE Floats load_f32(const int8_t* p) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<int8_t, FloatTag> d8;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, p)));
}

// Loads vectors (the tokens of a block, or the query heads of a group) as F32 rows of
// pad_lanes(dim) elements, padded with zeros.
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

// Multiplies each token of a block by two scales: one for its first `split` elements, and one for
// the others.
HWY_INLINE void scale_parts(const float* HWY_RESTRICT first_scales,
                            const float* HWY_RESTRICT second_scales, int split, int padded_dim,
                            float* HWY_RESTRICT block) {
  const FloatTag d;
  for (int token = 0; token < kBlockTokens; ++token, block += padded_dim) {
    const Floats first = hn::Set(d, first_scales[token]);
    const Floats second = hn::Set(d, second_scales[token]);
    for (int i = 0; i < padded_dim; i += kLanes) {
      const auto num_first = static_cast<size_t>(std::clamp(split - i, 0, kLanes));
      const Floats scales = hn::IfThenElse(hn::FirstN(d, num_first), first, second);
      hn::Store(hn::Mul(hn::Load(d, block + i), scales), d, block + i);
    }
  }
}

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

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Floats sum_each(const Floats (&v)[kLanes]) {
  return v[0];
}
#else
// Lane i of the result is the sum of the lanes of v[i]. The additions follow the levels of a
// transposition.
HWY_INLINE Floats sum_pairs(Floats a, Floats b) {
  const FloatTag d;
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}

// Each 128-bit block of the result has the sums of the same blocks of a, b, c and e.
HWY_INLINE Floats sum_quads(Floats a, Floats b, Floats c, Floats e) {
  const FloatTag d;
  const hn::RepartitionToWide<FloatTag> dw;
  const auto ac = hn::BitCast(dw, sum_pairs(a, b));
  const auto be = hn::BitCast(dw, sum_pairs(c, e));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(dw, ac, be)),
                 hn::BitCast(d, hn::InterleaveUpper(dw, ac, be)));
}

template <typename V>
HWY_INLINE V sum_halves(V low, V high) {
  const FloatTag d;
  return hn::Add(hn::ConcatLowerLower(d, high, low), hn::ConcatUpperUpper(d, high, low));
}

template <typename V>
HWY_INLINE V sum_each(const V (&v)[4]) {
  return sum_quads(v[0], v[1], v[2], v[3]);
}

template <typename V>
HWY_INLINE V sum_each(const V (&v)[8]) {
  return sum_halves(sum_quads(v[0], v[1], v[2], v[3]), sum_quads(v[4], v[5], v[6], v[7]));
}

template <typename V>
HWY_INLINE V sum_each(const V (&v)[16]) {
  const V q0 = sum_quads(v[0], v[1], v[2], v[3]);
  const V q1 = sum_quads(v[4], v[5], v[6], v[7]);
  const V q2 = sum_quads(v[8], v[9], v[10], v[11]);
  const V q3 = sum_quads(v[12], v[13], v[14], v[15]);
  const V even = sum_halves(q0, q2);  // blocks q0, q0, q2, q2
  const V odd = sum_halves(q1, q3);
  return hn::Add(hn::OddEvenBlocks(odd, even),
                 hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd)));
}
#endif

// q · k for kLanes tokens, one per lane.
template <typename T>
HWY_INLINE Floats dot_tokens(const float* HWY_RESTRICT q, const T* HWY_RESTRICT k,
                             int64_t token_stride, int padded_dim) {
  const FloatTag d;
  Floats acc[kLanes];
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) acc[j] = hn::Zero(d);
  for (int i = 0; i < padded_dim; i += kLanes) {
    const Floats q_lanes = hn::Load(d, q + i);
    const T* at = k + i;
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j, at += token_stride) {
      acc[j] = hn::MulAdd(q_lanes, load_f32(at), acc[j]);
    }
  }
  return sum_each(acc);
}

// Adds weights[j] * v[j], for tokens [first, end) of a block, to kVecs vectors of the output. Even
// and odd tokens form two dependency chains, because a single chain would be limited by the latency
// of additions.
template <int kVecs, typename T>
HWY_INLINE void add_weighted(const float* HWY_RESTRICT weights, const T* HWY_RESTRICT v,
                             int64_t token_stride, int first, int end, float* HWY_RESTRICT acc) {
  const FloatTag d;
  Floats even[kVecs];
  Floats odd[kVecs];
#pragma GCC unroll 4
  for (int c = 0; c < kVecs; ++c) even[c] = hn::Load(d, acc + c * kLanes);
#pragma GCC unroll 4
  for (int c = 0; c < kVecs; ++c) odd[c] = hn::Zero(d);
  const auto add = [&](int j, Floats(&chain)[kVecs]) HWY_ATTR {
    const Floats weight = hn::Set(d, weights[j]);
    const T* at = v + j * token_stride;
#pragma GCC unroll 4
    for (int c = 0; c < kVecs; ++c) {
      chain[c] = hn::MulAdd(weight, load_f32(at + c * kLanes), chain[c]);
    }
  };
  int j = first;
  if (j < end && j % 2 == 1) add(j++, odd);
  for (; j + 1 < end; j += 2) {
    add(j, even);
    add(j + 1, odd);
  }
  if (j < end) add(j, even);
#pragma GCC unroll 4
  for (int c = 0; c < kVecs; ++c) hn::Store(hn::Add(even[c], odd[c]), d, acc + c * kLanes);
}

template <typename T>
HWY_INLINE void add_weighted_row(const float* weights, const T* v, int64_t token_stride, int first,
                                 int end, int padded_dim, float* acc) {
  int num_vecs = padded_dim / kLanes;
  for (; num_vecs >= 4; num_vecs -= 4, v += 4 * kLanes, acc += 4 * kLanes) {
    add_weighted<4>(weights, v, token_stride, first, end, acc);
  }
  if (num_vecs == 3) add_weighted<3>(weights, v, token_stride, first, end, acc);
  if (num_vecs == 2) add_weighted<2>(weights, v, token_stride, first, end, acc);
  if (num_vecs == 1) add_weighted<1>(weights, v, token_stride, first, end, acc);
}

}  // namespace quire::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
