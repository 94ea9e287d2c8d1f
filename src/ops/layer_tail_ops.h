// Parts of a layer after attention that some devices compute as one kernel, an optional part of a
// device (Ops::layer_tails).
#pragma once

#include <optional>

#include "ops/expert_ops.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace quire {

// All products between the attention of two layers: the part of a decoder layer after attention,
// with a gated SiLU MLP, up to the next layer's queries, keys and values. All tensors are
// [num_tokens, width]. With several ranks, each has its part of the layer, and the residual gets
// the sum of the ranks' outputs of `o` and of `down`.
struct LayerTail {
  const Linear* o = nullptr;
  const float* post_attention_norm = nullptr;
  const Linear* gate_up = nullptr;
  const Linear* down = nullptr;
  const float* next_norm = nullptr;
  const Linear* next_qkv = nullptr;  // null: last layer; the caller adds delta, the rank's part
  float norm_eps = 0.0F;
  TensorView attention;  // in
  TensorView residual;   // in and out
  TensorView delta;      // out of the last layer; otherwise scratch
  TensorView qkv;        // out, of next_qkv
  // Scratch; its content is undefined afterwards.
  TensorView normed;
  TensorView gate_up_out;
  TensorView product;
};

// The choice of the experts of each token of x = the norm, by the logits linear(router, x).
struct RouterCall {
  ExpertRouting routing;
  const Linear* router = nullptr;         // [num_experts, hidden_size]
  std::optional<ResidualNorm> norm = {};  // absent: x is given
  TensorView x;                           // [num_tokens, hidden_size]
  TensorView logits;                      // F32 [num_tokens, num_experts], scratch
  const float* bias = nullptr;            // of ExpertOps::route
  TensorView ids;                         // out, as ExpertOps::route() writes them
  TensorView weights;                     // out
};

// Works in the stream of the Ops that it is a part of.
class LayerTailOps {
 public:
  virtual ~LayerTailOps() = default;

  // Returns true if the tail was enqueued as one kernel, which is faster here. Otherwise nothing
  // was enqueued, and the caller computes the tail with the operations of Ops.
  virtual bool try_layer_tail(const LayerTail& tail) = 0;
  // Returns true if the router was enqueued as one kernel, like try_layer_tail(). run_router()
  // calls this.
  virtual bool try_router(const RouterCall& /*call*/) { return false; }
};

// Computes a layer tail with the operations of Ops; the baseline for testing and measuring a fused
// kernel.
inline void run_layer_tail(Ops& ops, const LayerTail& tail) {
  const auto norm = [&](const float* weight) {
    ops.residual_norm({.residual = tail.residual,
                       .delta = tail.delta,
                       .weight = weight,
                       .eps = tail.norm_eps,
                       .sums_ranks = true},
                      tail.normed);
  };
  ops.linear(*tail.o, tail.attention, tail.delta);
  norm(tail.post_attention_norm);
  GatedMlp mlp;
  mlp.gate_up = tail.gate_up;
  mlp.down = tail.down;
  mlp.x = tail.normed;
  mlp.out = tail.delta;
  mlp.gate_up_out = tail.gate_up_out;
  mlp.product = tail.product;
  ops.gated_mlp(mlp);
  if (tail.next_qkv == nullptr) return;
  norm(tail.next_norm);
  ops.linear(*tail.next_qkv, tail.normed, tail.qkv);
}

// Computes a router as one kernel if that is faster, otherwise with the operations of Ops.
inline void run_router(Ops& ops, RouterCall call) {
  const auto try_one_kernel = [&] {
    return ops.layer_tails() != nullptr && ops.layer_tails()->try_router(call);
  };
  if (try_one_kernel()) return;
  if (call.norm) {
    ops.residual_norm(*call.norm, call.x);
    call.norm.reset();
    // The norm may need a sum over ranks, and the rest may still be one kernel.
    if (try_one_kernel()) return;
  }
  ops.linear(*call.router, call.x, call.logits);
  ops.experts()->route(call.routing, call.logits, call.bias, call.ids, call.weights);
}

}  // namespace quire
