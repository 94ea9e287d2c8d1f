// The attention seam: a backend says what it serves and makes plans; a plan computes attention.
// Nothing else in the code knows which backend runs.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/batch.h"
#include "kv/kv_layout.h"
#include "quire/status.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace quire {

// Constant for one phase of a group of layers.
struct AttentionShape {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int head_dim_v = 0;
  int page_size = 16;
  DType q = DType::kF32;
  DType kv = DType::kF32;
  DType out = DType::kF32;
  float scale = 1.0F;    // multiplies q·k
  float softcap = 0.0F;  // s := softcap * tanh(s / softcap); 0: off
  int window = 0;        // a query sees its last `window` positions, itself included; 0: all
  bool causal = true;
  bool sinks = false;  // one logit per head joins the softmax's denominator, attending to nothing

  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// How the pages of such a cache lie in memory.
inline KvLayout kv_layout(const AttentionShape& shape) {
  return {.page_size = shape.page_size,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .head_dim_v = shape.head_dim_v,
          .dtype = shape.kv};
}

// The kind of steps that a backend is asked about, and that a plan is made for.
struct AttentionUse {
  Phase phase = Phase::kDecode;
  int q_len = 1;          // decode: query tokens of every request, at most; prompts have any number
  bool in_graph = false;  // captured once and replayed for other lengths

  friend bool operator==(const AttentionUse&, const AttentionUse&) = default;
};

// Yes, or all the reasons why not.
struct Support {
  std::vector<std::string> reasons;
  // Why another backend does better where one serves: selection then passes over this one, unless
  // a flag names it.
  std::vector<std::string> reservations = {};

  bool ok() const { return reasons.empty(); }
};

// The batches that a plan has room for.
struct PlanLimits {
  AttentionUse use;
  int max_num_reqs = 0;    // in a graph: exactly so many
  int max_num_tokens = 0;  // of the phase; in a graph: exactly max_num_reqs * use.q_len
  int max_kv_len = 0;
};

// One layer's attention over the phase of a plan.
struct AttentionCall {
  TensorView q;    // [num_tokens, num_heads, head_dim], all tokens of the step
  TensorView out;  // [num_tokens, num_heads, head_dim_v]; only the phase's rows are written
  KvCacheView kv;
  const float* sinks = nullptr;    // [num_heads] logits, with shape.sinks
  std::span<std::byte> workspace;  // AttentionPlan::workspace_bytes, 256-byte aligned on a GPU
};

// A plan owns all state between update() and run(): plans of one backend and of
// equal shapes, of two models or two graphs, are updated and run in any order. The backend outlives
// its plans.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;

  // Scratch of one run(), for any batch within the limits; calls in turn share one workspace.
  virtual size_t workspace_bytes() const = 0;
  // Once per step, before any layer runs, for a batch whose range of the phase is not empty: host
  // work of at most 10 µs for 256 requests, from upper bounds, without allocation or
  // synchronization; it may enqueue copies of what it decided. The batch's arrays outlive the step.
  // A plan for a graph is updated before the capture and before each replay: what run() enqueues
  // does not depend on lengths, only on the range's shape and on the batch's device pointers.
  virtual Status update(const AttentionBatch& batch, Stream& stream) = 0;
  // Enqueues, without allocation or synchronization. A request of length 0 (padding) gets zeros.
  virtual Status run(const AttentionCall& call, Stream& stream) = 0;
};

class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string_view name() const = 0;
  virtual Support supports(const AttentionShape& shape, const AttentionUse& use,
                           const Device& device) const = 0;
  // At start, for a shape and a use that it supports: makes all memory of the plan and loads what
  // its first run would load. One plan per runner, model, KV group and graph, and one per phase for
  // the steps that no graph holds.
  virtual Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                           const PlanLimits& limits) = 0;
};

}  // namespace quire
