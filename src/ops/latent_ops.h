// The operations of multi-head latent attention, an optional part of a device (Ops::latents).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/kv_layout.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace quire {

// One matrix per head, [out_features, in_features], in the device's own layout.
class PerHeadLinear {
 public:
  virtual ~PerHeadLinear() = default;
  virtual int num_heads() const = 0;
  virtual int64_t in_features() const = 0;
  virtual int64_t out_features() const = 0;
  virtual size_t num_bytes() const = 0;
};

// Arguments of the rotation and cache write of multi-head latent attention. The cache holds one
// vector per token (KvLayout::is_latent): an RMSNorm of the first `latent_dim` elements of
// `latent`, then the other elements, rotated. Also rotates the last rope_dim elements of each query
// head.
struct LatentRopeAndCache {
  TensorView q;        // [num_tokens, num_heads, any + rope_dim]
  TensorView q_out;    // as q; only the last rope_dim elements of a head are written
  TensorView latent;   // [num_tokens, latent_dim + rope_dim]
  TensorView cos_sin;  // F32 [num_tokens, rope_dim], as in RopeAndCache
  RotaryPairs pairs = RotaryPairs::kNeighbours;
  const float* norm = nullptr;  // [latent_dim] weights
  float norm_eps = 0.0F;
  // Device, F32 [num_tokens]: multiplies whole heads of q_out after the rotation. This includes the
  // first elements of a head, which the caller has written. Null: none.
  const float* q_scale = nullptr;
  int page_size = 0;
  KvCacheView kv;
  const int64_t* kv_slots = nullptr;  // device, [num_tokens]; < 0: not written
};

// The products of the expanded form of latent vectors (attn/expansion.h): one input for all heads.
class LatentExpansionOps {
 public:
  virtual ~LatentExpansionOps() = default;

  // out[t, h, n] = sum_k x[t, k] * w[h][n, k], x: [num_tokens, in_features]. `out` has num_heads
  // heads of at least out_features elements; the elements after them are not changed.
  virtual void shared_linear(const PerHeadLinear& w, TensorView x, TensorView out) = 0;
  // Multiplies by transposed matrices: out[t, h, k] = sum_n x[t, n] * w[h][n, k].
  virtual void shared_linear_transposed(const PerHeadLinear& w, TensorView x, TensorView out) = 0;
};

// Works in the stream of the Ops that it is a part of.
class LatentOps {
 public:
  virtual ~LatentOps() = default;

  // out[t, h, n] = sum_k x[t, h, k] * w[h][n, k]. x and out have num_heads heads of at least
  // in_features and out_features elements; later elements of a head are neither read nor changed.
  // On a CPU, the bits of a row do not depend on the number of rows.
  virtual void per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) = 0;
  virtual void latent_rope_and_cache(const LatentRopeAndCache& args) = 0;
  // Null: no attention of this device has the expanded form.
  virtual LatentExpansionOps* expansion() { return nullptr; }
};

}  // namespace quire
