// The two forms of multi-head latent attention. In the absorbed form, the queries are multiplied by
// each head's matrices, and attention reads the latent vectors of the cache. In the expanded form,
// the latent vectors are multiplied by the matrices, and attention reads keys and values of every
// head. Per head and pair of positions, the absorbed form needs 1,088 multiplications. The expanded
// form needs 320 with DeepSeek's sizes and 512 with GLM-4.7-Flash's. But per head and expanded
// position, it needs 131,072 or 229,376 more, so it suits steps of many query tokens.
//
// The plan of a step chooses the form. A model computes the products, because it has the matrices.
#pragma once

#include <cstddef>
#include <span>

#include "attn/backend.h"

namespace quire {

// Multiplies latent vectors by the matrices of one layer. The products are enqueued into the stream
// of the model's operations, in which the attention runs too.
class LatentExpander {
 public:
  virtual ~LatentExpander() = default;
  // latents: [num_rows, latent_dim]. Writes values [num_rows, num_heads, value_dim], and of keys
  // [num_rows, num_heads, key_dim] the beginning of each head, which is not rotated.
  virtual void expand(TensorView latents, TensorView keys, TensorView values) = 0;
};

// The number of elements of ExpandedCall::scratch per element of `out`: one for a partial result,
// and two for a merged result in F32. A request's first partial result is in `out`, rounded.
inline constexpr int kExpandedScratch = 3;

// The arguments of one layer's expanded attention, in the plan's phase.
struct ExpandedCall {
  TensorView q;        // [num_tokens, num_heads, key_dim], all tokens of the step, rotated
  TensorView out;      // [num_tokens, num_heads, value_dim]; only the phase's rows are written
  TensorView scratch;  // [num_tokens, num_heads, kExpandedScratch * value_dim], in the type of
                       // `out`
  KvCacheView kv;
  LatentExpander* expander = nullptr;
  std::span<std::byte> workspace;  // AttentionPlan::workspace_bytes, 256-byte aligned
};

// A plan with both forms. Its heads have the shape's expanded dimensions.
class ExpandingPlan : public AttentionPlan {
 public:
  // Enqueues the expanded attention of one layer, as run() does. A request of length 0 gets zeros.
  virtual Status run_expanded(const ExpandedCall& call, Stream& stream) = 0;
};

}  // namespace quire
