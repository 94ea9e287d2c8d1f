// One operation for all products between the attention of two layers, an optional part of a device
// (Ops::layer_tails).
#pragma once

#include "ops/ops.h"
#include "tensor/tensor.h"

namespace quire {

// The part of a decoder layer after attention, with a gated SiLU MLP, up to the next layer's
// queries, keys and values. All tensors are [num_tokens, width]. With several ranks, each has its
// part of the layer, and the residual gets the sum of the ranks' outputs of `o` and of `down`.
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

// Works in the stream of the Ops that it is a part of.
class LayerTailOps {
 public:
  virtual ~LayerTailOps() = default;

  // Returns true if the tail was enqueued as one kernel, which is faster here. Otherwise nothing
  // was enqueued, and the caller computes the tail with the operations of Ops.
  virtual bool try_layer_tail(const LayerTail& tail) = 0;
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

}  // namespace quire
