// Products of one input with the matrices of every head, for devices that expand latent vectors to
// keys and values (attn/expansion.h). The Ops of such a device implement it.
#pragma once

#include "ops/ops.h"

namespace quire {

class SharedProducts {
 public:
  virtual ~SharedProducts() = default;

  // out[t, h, n] = sum_k x[t, k] * w[h][n, k]. x: [num_tokens, in_features]; out has num_heads
  // heads of at least out_features elements, of which further ones are kept.
  virtual void shared_linear(const PerHeadLinear& w, TensorView x, TensorView out,
                             Stream& stream) = 0;
  // out[t, h, k] = sum_n x[t, n] * w[h][n, k], the same with transposed matrices.
  virtual void shared_linear_transposed(const PerHeadLinear& w, TensorView x, TensorView out,
                                        Stream& stream) = 0;
};

}  // namespace quire
