#pragma once

#include <cstdint>

namespace quire::cpu {

// Consecutive tokens of one head of a gated delta net.
struct DeltaHead {
  int num_tokens = 0;
  int k_dim = 0;
  int v_dim = 0;
  int64_t stride = 0;            // from a token's q, k or v to the next token's
  const float* q = nullptr;      // [k_dim] of the first token
  const float* k = nullptr;      // [k_dim]
  const float* v = nullptr;      // [v_dim]
  const float* decay = nullptr;  // [num_tokens]
  const float* beta = nullptr;   // [num_tokens]
  float* state = nullptr;        // [k_dim, v_dim], the S before the tokens and then after them
  float* out = nullptr;          // [num_tokens, v_dim]
};

// For each token in turn: S = decay * S, S += k (beta * (v - S^T k))^T, out = S^T q. The bits of a
// token do not depend on the tokens after it.
void run_delta_head(const DeltaHead& head);

}  // namespace quire::cpu
