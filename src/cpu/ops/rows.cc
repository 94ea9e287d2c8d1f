// The operations on separate rows, through Highway. An element's bits depend only on its row.
//
// Norms: squares are summed in F32, in four vectors of partial sums that are added in a fixed
// order, which depends only on the row's length.
//
// Activations: tanh GELU is computed as x / (1 + exp(-2 u)), because (1 + tanh(u)) / 2 is the
// logistic function of 2 u; this keeps the relative accuracy of small results. exp(y) = 2^n p(r),
// where n = round(y / ln 2), r = y - n ln 2 is computed in two steps (Cody and Waite), and p is
// exp's Taylor polynomial of degree 6, whose truncation error on |r| <= ln 2 / 2 is below 2 ulp.
// GELU by the error function needs erfc(z) = t g(t) exp(-z^2) for z = |x| / sqrt(2) and t = 1 / (1
// + z / 2), where g is a degree-10 Chebyshev fit with a relative error of 5e-8. It keeps the
// relative accuracy of small results, too. The same vector code processes the tail of a row, in a
// padded copy, so an element's bits do not depend on its position.
#include "cpu/ops/rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/rows.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>

#include "base/check.h"
#include "cpu/ops/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

float sum_of_squares(const float* HWY_RESTRICT x, int64_t n) {
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
void multiply_row(const float* x, float scale, const float* weight, int64_t n, float* out) {
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

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  multiply_row(x, 1.0F / std::sqrt(mean + eps), weight, n, out);
}

void add(float* x, const float* delta, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, delta + i)), d, x + i);
  }
  for (; i < n; ++i) x[i] += delta[i];
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V y) {
  // Within these bounds, 2^n is a normal number. At the bounds, 1 + exp(y) has reached its limits.
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

// x / (1 + exp(y))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_product(D d, V x, V y) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0F), exp_of(d, y)));
}

// x / 2 * erfc(-x / sqrt(2))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_of(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.35355339F), one));
  V g = hn::Set(d, 0.045351338F);
  for (const float c : {-0.24558003F, 0.51689952F, -0.48247477F, 0.15188518F, -0.067958273F,
                        0.0958272F, 0.1749486F, 0.24691357F, 0.28209287F, 0.28209481F}) {
    g = hn::MulAdd(g, t, hn::Set(d, c));
  }
  const V half = hn::Set(d, 0.5F);
  const V outside = hn::Mul(hn::Mul(g, t), exp_of(d, hn::Mul(hn::Neg(half), hn::Mul(x, x))));
  // Half of erfc(|x| / sqrt(2)), the share of the normal distribution on the far side of x.
  const V share = hn::Mul(half, outside);
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), share, hn::Sub(one, share)));
}

template <Activation kActivation, class D, class V = hn::Vec<D>>
HWY_INLINE V activation_of(D d, V x) {
  if constexpr (kActivation == Activation::kSilu) {
    return logistic_product(d, x, hn::Neg(x));
  } else if constexpr (kActivation == Activation::kGelu) {
    return gelu_of(d, x);
  } else if constexpr (kActivation == Activation::kClampedSwiglu) {
    return logistic_product(d, x, hn::Mul(x, hn::Set(d, -kSwigluAlpha)));
  } else {
    constexpr float kLinear = -1.5957691216F;   // -2 sqrt(2 / pi)
    constexpr float kCubic = -0.071354816273F;  // cubic term: the same factor times 0.044715
    const V slope = hn::MulAdd(hn::Set(d, kCubic), hn::Mul(x, x), hn::Set(d, kLinear));
    return logistic_product(d, x, hn::Mul(x, slope));
  }
}

// Returns at most `limit`. A NaN is not greater than any number, so it stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_most(D d, float limit, V x) {
  const V most = hn::Set(d, limit);
  return hn::IfThenElse(hn::Gt(x, most), most, x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_least(D d, float limit, V x) {
  const V least = hn::Set(d, limit);
  return hn::IfThenElse(hn::Lt(x, least), least, x);
}

template <Activation kActivation, class D, class V = hn::Vec<D>>
HWY_INLINE V gated_product(D d, V gate, V up) {
  if constexpr (kActivation == Activation::kClampedSwiglu) {
    gate = at_most(d, kSwigluLimit, gate);
    up = at_least(d, -kSwigluLimit, at_most(d, kSwigluLimit, up));
    up = hn::Add(up, hn::Set(d, 1.0F));
  }
  return hn::Mul(activation_of<kActivation>(d, gate), up);
}

template <Activation kActivation>
HWY_INLINE void gated_row(const float* gate, const float* up, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto product = [&](auto g, auto u) HWY_ATTR { return gated_product<kActivation>(d, g, u); };
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
  gated_row<Activation::kGelu>(gate, up, n, out);
}

void gelu_tanh_row(const float* gate, const float* up, int64_t n, float* out) {
  gated_row<Activation::kGeluTanh>(gate, up, n, out);
}

void clamped_swiglu_row(const float* gate, const float* up, int64_t n, float* out) {
  gated_row<Activation::kClampedSwiglu>(gate, up, n, out);
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

// out[i] = x[i] cos[i] - x[half + i] sin[i]; out[half + i] = x[half + i] cos[i] + x[i] sin[i].
HWY_INLINE void rotate(const float* x, const float* cos, const float* sin, int64_t half,
                       float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + half + i);
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::LoadU(d, sin + i);
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, out + i);
    hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, out + half + i);
  }
  for (; i < half; ++i) {
    const float a = x[i];
    const float b = x[half + i];
    out[i] = a * cos[i] - b * sin[i];
    out[half + i] = b * cos[i] + a * sin[i];
  }
}

// out[2 i] = x[2 i] cos[i] - x[2 i + 1] sin[i]; out[2 i + 1] = x[2 i + 1] cos[i] + x[2 i] sin[i].
HWY_INLINE void rotate_neighbours(const float* x, const float* cos, const float* sin, int64_t half,
                                  float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    hn::Vec<decltype(d)> a;
    hn::Vec<decltype(d)> b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::LoadU(d, sin + i);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)),
                          hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, out + 2 * i);
  }
  for (; i < half; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    out[2 * i] = a * cos[i] - b * sin[i];
    out[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

HWY_INLINE void rotate_pairs(RotaryPairs pairs, const float* x, const float* cos_sin,
                             int64_t rope_dim, float* out) {
  const float* sin = cos_sin + rope_dim / 2;
  if (pairs == RotaryPairs::kHalves) {
    rotate(x, cos_sin, sin, rope_dim / 2, out);
  } else {
    rotate_neighbours(x, cos_sin, sin, rope_dim / 2, out);
  }
}

// Processes one query or key head: rotates the first rope_dim elements, and applies the norm if it
// has weights.
HWY_INLINE void norm_and_rotate(const RopeAndCache& args, const float* norm, const float* cos_sin,
                                const float* head, float* out) {
  const int64_t rope_dim = args.cos_sin.shape[1];
  HWY_ALIGN std::array<float, kMaxHeadDim> normed;
  if (norm != nullptr && !args.norms_after_rotation) {
    rms_norm(head, norm, args.norm_eps, args.head_dim, normed.data());
    head = normed.data();
  }
  rotate_pairs(args.pairs, head, cos_sin, rope_dim, out);
  std::copy(head + rope_dim, head + args.head_dim, out + rope_dim);
  if (norm != nullptr && args.norms_after_rotation) {
    rms_norm(out, norm, args.norm_eps, args.head_dim, out);
  }
}

HWY_INLINE void multiply(float scale, float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= scale;
}

// The location of one token's keys or values in a layer's cache.
struct CachePlace {
  void* data;
  DType dtype;
  const float* fp8_scale;
  int64_t vector;       // index of the first head's vector
  int64_t scale;        // kI8: index of the first byte of its scale
  int64_t part_stride;  // kI8: bytes between the two scales of a latent vector
  int64_t head_stride;

  // Writes elements [first, first + n) of a head's vector: the whole vector, or one of the two
  // parts of a latent vector.
  HWY_INLINE void write(int64_t head, int64_t first, const float* x, int64_t n) const {
    const int64_t at = vector + head * head_stride + first;
    if (dtype != DType::kI8) return store_as(x, n, dtype, fp8_scale, data, at);
    auto* const bytes = static_cast<int8_t*>(data);
    const float of_part = store_i8(x, n, bytes + at);
    const int64_t scale_at = scale + head * head_stride + (first == 0 ? 0 : part_stride);
    std::memcpy(bytes + scale_at, &of_part, sizeof(of_part));
  }
};

HWY_INLINE CachePlace key_place(const KvCacheView& kv, int64_t kv_slot, int64_t page_size) {
  constexpr auto kScaleBytes = static_cast<int64_t>(sizeof(float));
  const int64_t page = kv_slot / page_size * kv.page_stride_k;
  const int64_t offset = kv_slot % page_size;
  return {.data = kv.k,
          .dtype = kv.dtype,
          .fp8_scale = kv.k_scale,
          .vector = page + offset * kv.token_stride_k,
          .scale = page + kv.scale_offset_k + offset * kScaleBytes,
          .part_stride = page_size * kScaleBytes,
          .head_stride = kv.head_stride_k};
}

HWY_INLINE CachePlace value_place(const KvCacheView& kv, int64_t kv_slot, int64_t page_size) {
  KvCacheView values = kv;
  values.k = kv.v;
  values.k_scale = kv.v_scale;
  values.page_stride_k = kv.page_stride_v;
  values.head_stride_k = kv.head_stride_v;
  values.token_stride_k = kv.token_stride_v;
  values.scale_offset_k = kv.scale_offset_v;
  return key_place(values, kv_slot, page_size);
}

void rope_row(const RopeAndCache& args, int64_t token) {
  const int64_t head_dim = args.head_dim;
  const float* head = args.qkv.as<float>() + token * args.qkv.shape[1];
  const float* cos_sin = args.cos_sin.as<float>() + token * args.cos_sin.shape[1];
  float* q_out = args.q_out.as<float>() + token * args.num_heads * head_dim;
  for (int h = 0; h < args.num_heads; ++h, head += head_dim, q_out += head_dim) {
    norm_and_rotate(args, args.q_norm, cos_sin, head, q_out);
    if (args.q_scale != nullptr) multiply(args.q_scale[token], q_out, head_dim);
  }
  const int64_t kv_slot = args.kv_slots[token];
  if (kv_slot < 0) return;
  HWY_ALIGN std::array<float, kMaxHeadDim> rotated;
  const CachePlace keys = key_place(args.kv, kv_slot, args.page_size);
  const float* value_head = args.k_is_v ? head : head + args.num_kv_heads * head_dim;
  for (int h = 0; h < args.num_kv_heads; ++h, head += head_dim) {
    norm_and_rotate(args, args.k_norm, cos_sin, head, rotated.data());
    keys.write(h, 0, rotated.data(), head_dim);
  }
  const CachePlace values = value_place(args.kv, kv_slot, args.page_size);
  const int value_dim = args.value_dim();
  for (int h = 0; h < args.num_kv_heads; ++h, value_head += value_dim) {
    const float* value = value_head;
    if (args.v_norm != nullptr) {
      rms_norm(value, args.v_norm, args.norm_eps, value_dim, rotated.data());
      value = rotated.data();
    }
    if (args.value_scale != 1.0F) {
      if (value != rotated.data()) std::copy_n(value, value_dim, rotated.data());
      multiply(args.value_scale, rotated.data(), value_dim);
      value = rotated.data();
    }
    values.write(h, 0, value, value_dim);
  }
}

void latent_row(const LatentRopeAndCache& args, int64_t token) {
  const int64_t rope_dim = args.cos_sin.shape[1];
  const int64_t latent_dim = args.latent.shape[1] - rope_dim;
  const int64_t num_heads = args.q.shape[1];
  const int64_t q_dim = args.q.shape[2];
  const int64_t out_dim = args.q_out.shape[2];
  const float* cos_sin = args.cos_sin.as<float>() + token * rope_dim;
  const float* q_end = args.q.as<float>() + token * num_heads * q_dim + q_dim - rope_dim;
  float* q_out = args.q_out.as<float>() + token * num_heads * out_dim;
  for (int64_t h = 0; h < num_heads; ++h, q_end += q_dim, q_out += out_dim) {
    rotate_pairs(args.pairs, q_end, cos_sin, rope_dim, q_out + out_dim - rope_dim);
    if (args.q_scale != nullptr) multiply(args.q_scale[token], q_out, out_dim);
  }
  const int64_t kv_slot = args.kv_slots[token];
  if (kv_slot < 0) return;
  const CachePlace keys = key_place(args.kv, kv_slot, args.page_size);
  const float* latent = args.latent.as<float>() + token * args.latent.shape[1];
  HWY_ALIGN std::array<float, kMaxLatentDim> part;
  rms_norm(latent, args.norm, args.norm_eps, latent_dim, part.data());
  keys.write(0, 0, part.data(), latent_dim);
  rotate_pairs(args.pairs, latent + latent_dim, cos_sin, rope_dim, part.data());
  keys.write(0, latent_dim, part.data(), rope_dim);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {
float open_gate(GateFunction function, float x) {
  switch (function) {
    case GateFunction::kIdentity:
      return x;
    case GateFunction::kSigmoid:
      return 1.0F / (1.0F + std::exp(-x));
    case GateFunction::kSoftplus:
      return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x)));
  }
  QUIRE_CHECK(false, "[ops] gate: an unknown function");
}

HWY_EXPORT(rms_norm);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(multiply_row);
HWY_EXPORT(add);
HWY_EXPORT(silu_row);
HWY_EXPORT(gelu_row);
HWY_EXPORT(gelu_tanh_row);
HWY_EXPORT(clamped_swiglu_row);
HWY_EXPORT(cap_row);
HWY_EXPORT(rope_row);
HWY_EXPORT(latent_row);

void rms_norm_row(const float* x, const float* weight, float eps, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(rms_norm)(x, weight, eps, n, out);
}

float sum_of_squares_row(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, n);
}

void scale_row(const float* x, float scale, const float* weight, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(multiply_row)(x, scale, weight, n, out);
}

void add_row(float* x, const float* delta, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add)(x, delta, n);
}

void gated_mul_row(Activation activation, const float* gate, const float* up, int64_t n,
                   float* out) {
  switch (activation) {
    case Activation::kSilu:
      return HWY_DYNAMIC_DISPATCH(silu_row)(gate, up, n, out);
    case Activation::kGelu:
      return HWY_DYNAMIC_DISPATCH(gelu_row)(gate, up, n, out);
    case Activation::kGeluTanh:
      return HWY_DYNAMIC_DISPATCH(gelu_tanh_row)(gate, up, n, out);
    case Activation::kClampedSwiglu:
      return HWY_DYNAMIC_DISPATCH(clamped_swiglu_row)(gate, up, n, out);
  }
}

void gate_row(GateFunction function, const float* gates, int64_t num_gates, int64_t n, float* x) {
  const int64_t size = n / num_gates;
  for (int64_t g = 0; g < num_gates; ++g, x += size) {
    const float factor = open_gate(function, gates[g]);
    for (int64_t i = 0; i < size; ++i) x[i] *= factor;
  }
}

void soft_cap_row(float cap, float* x, int64_t n) {
  HWY_DYNAMIC_DISPATCH(cap_row)(cap, x, n);
}

void rope_and_cache_row(const RopeAndCache& args, int64_t token) {
  HWY_DYNAMIC_DISPATCH(rope_row)(args, token);
}

void latent_rope_and_cache_row(const LatentRopeAndCache& args, int64_t token) {
  HWY_DYNAMIC_DISPATCH(latent_row)(args, token);
}

float position_scale(const PositionScale& scale, int32_t position) {
  const double periods = std::floor((double{scale.offset} + position) / double{scale.period});
  return static_cast<float>(1.0 + double{scale.beta} * std::log1p(periods));
}

void rope_angles_row(const float* inv_freq, float factor, int32_t position, int64_t half,
                     float* cos_sin) {
  for (int64_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * static_cast<double>(inv_freq[i]);
    cos_sin[i] = static_cast<float>(std::cos(angle)) * factor;
    cos_sin[half + i] = static_cast<float>(std::sin(angle)) * factor;
  }
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
