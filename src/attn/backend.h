// The attention seam: one class and plain data. Nothing else in the house knows which backend runs.
#pragma once

#include <cstddef>
#include <limits>
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

enum class Phase { kDecode, kPrefill };

constexpr std::string_view phase_name(Phase phase) {
  return phase == Phase::kDecode ? "decode" : "prefill";
}

// Constant for a group of layers.
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
  bool mla = false;
  bool sinks = false;  // one logit a head joins the softmax's denominator and attends to nothing

  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// How its pages lie in memory.
inline KvLayout kv_layout(const AttentionShape& shape) {
  return {.page_size = shape.page_size,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .head_dim_v = shape.head_dim_v,
          .dtype = shape.kv};
}

// Yes, or all the reasons why not.
struct Support {
  std::vector<std::string> reasons;
  bool ok() const { return reasons.empty(); }
};

struct AttentionLimits {
  int max_num_reqs = 0;
  int max_num_tokens = 0;
  int max_kv_len = 0;
  // For one that plans_each_size(): numbers of requests of the batches with `for_graph` set, and
  // whether there are others, of any number.
  std::span<const int> graph_sizes = {};
  bool eager = true;
};

// Of Workspace::counters on a GPU.
inline constexpr size_t kCounterBytes = size_t{1} << 20;

// One arena for a whole step, sized at start; `counters` stays zero between calls.
struct Workspace {
  std::span<std::byte> arena;
  std::span<std::byte> counters;
};

// One layer's attention over one phase of the batch.
struct AttentionCall {
  const AttentionShape* shape = nullptr;
  const AttentionBatch* batch = nullptr;
  Phase phase = Phase::kDecode;
  TensorView q;    // [num_tokens, num_heads, head_dim], all tokens of the step
  TensorView out;  // [num_tokens, num_heads, head_dim_v]; only the phase's rows are written
  KvCacheView kv;
  const float* q_scale = nullptr;  // FP8 queries; null: 1
  const float* sinks = nullptr;    // [num_heads] logits, with shape->sinks
  float* lse = nullptr;            // [num_tokens, num_heads], natural log; null: not wanted
  Workspace workspace;
};

class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string_view name() const = 0;
  virtual Support supports(const AttentionShape& shape, Phase phase,
                           const Device& device) const = 0;
  // Query tokens of a decoding request that it serves at most: selection passes it over for more.
  virtual int max_decode_q_len() const { return std::numeric_limits<int>::max(); }
  // Whether it is made for a few numbers of requests, and slower at all others. Selection then
  // takes it for graphs alone, as long as others serve.
  virtual bool plans_each_size() const { return false; }
  // Once at start for each shape, ahead of any plan() of it: makes what plans need beside the
  // workspace, so that nothing has to be made in a step. Of two calls the larger limits stand.
  virtual Status prepare(const AttentionShape& /*shape*/, const AttentionLimits& /*limits*/) {
    return {};
  }
  // A bound, after prepare() of the same arguments.
  virtual size_t workspace_bytes(const AttentionShape& shape,
                                 const AttentionLimits& limits) const = 0;
  // Once a step and KV group, before any layer runs: host work in at most 10 µs for 256 requests,
  // from upper bounds, no synchronization; it may enqueue copies of what it decided. A batch with
  // `for_graph` set is planned before its graph is captured and before each replay.
  virtual Status plan(const AttentionShape& shape, const AttentionBatch& batch,
                      Workspace& workspace, Stream& stream) = 0;
  // Enqueues: no allocation, no synchronization. A request of length 0 (padding) gets zeros.
  virtual Status run(const AttentionCall& call, Stream& stream) = 0;
};

}  // namespace quire
