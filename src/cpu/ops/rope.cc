// QK-norm, rotation and the write to the cache, one token at a time.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/ops/rows.h"
#include "tensor/float_convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/rope.cc"
#include <hwy/foreach_target.h>
//
#include "cpu/ops/norm-inl.h"
#include "cpu/ops/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

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

// Processes one query or key head: norm if there are weights, then rotation of the first rope_dim
// elements.
HWY_INLINE void norm_and_rotate(const RopeAndCache& args, const float* norm, const float* cos_sin,
                                const float* head, float* out) {
  const int64_t rope_dim = args.cos_sin.shape[1];
  HWY_ALIGN std::array<float, kMaxHeadDim> normed;
  if (norm != nullptr) {
    rms_norm(head, norm, args.norm_eps, args.head_dim, normed.data());
    head = normed.data();
  }
  const float* sin = cos_sin + rope_dim / 2;
  if (args.pairs == RotaryPairs::kHalves) {
    rotate(head, cos_sin, sin, rope_dim / 2, out);
  } else {
    rotate_neighbours(head, cos_sin, sin, rope_dim / 2, out);
  }
  std::copy(head + rope_dim, head + args.head_dim, out + rope_dim);
}

void rope_row(const RopeAndCache& args, int64_t token) {
  const int64_t head_dim = args.head_dim;
  const float* head = args.qkv.as<float>() + token * args.qkv.shape[1];
  const float* cos_sin = args.cos_sin.as<float>() + token * args.cos_sin.shape[1];
  float* q_out = args.q_out.as<float>() + token * args.num_heads * head_dim;
  for (int h = 0; h < args.num_heads; ++h, head += head_dim, q_out += head_dim) {
    norm_and_rotate(args, args.q_norm, cos_sin, head, q_out);
  }
  const int64_t slot = args.slot_mapping[token];
  if (slot < 0) return;
  const KvCacheView& kv = args.kv;
  const int64_t page = slot / args.page_size;
  const int64_t offset = slot % args.page_size;
  HWY_ALIGN std::array<float, kMaxHeadDim> rotated;
  int64_t at = page * kv.page_stride_k + offset * kv.token_stride_k;
  for (int h = 0; h < args.num_kv_heads; ++h, head += head_dim, at += kv.head_stride_k) {
    norm_and_rotate(args, args.k_norm, cos_sin, head, rotated.data());
    store_as(rotated.data(), head_dim, kv.dtype, kv.k_scale, kv.k, at);
  }
  at = page * kv.page_stride_v + offset * kv.token_stride_v;
  for (int h = 0; h < args.num_kv_heads; ++h, head += head_dim, at += kv.head_stride_v) {
    store_as(head, head_dim, kv.dtype, kv.v_scale, kv.v, at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(rope_row);

void rope_and_cache_row(const RopeAndCache& args, int64_t token) {
  HWY_DYNAMIC_DISPATCH(rope_row)(args, token);
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
