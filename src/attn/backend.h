// The batch of a step as attention receives it, and the interface of attention backends. A backend
// reports which shapes it supports and makes plans; a plan computes attention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/kv_layout.h"
#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

enum class Phase { kDecode, kPrefill };

constexpr std::string_view phase_name(Phase phase) {
  return phase == Phase::kDecode ? "decode" : "prefill";
}

// An array in host and device memory; on a CPU both pointers are equal.
template <typename T>
struct HostDev {
  const T* host = nullptr;
  const T* device = nullptr;
};

// Consecutive requests of one phase. A batch has the decode requests first.
struct PhaseRange {
  int first_req = 0;
  int num_reqs = 0;
  int first_token = 0;
  int num_tokens = 0;
  int max_q_len = 0;   // of any request; on a GPU, every decode request has exactly this many query
                       // tokens
  int max_kv_len = 0;  // upper bound; in a graph's batch, the longest possible context
};

// One batch per step and KV group serves all layers of the group. If request r has n query tokens,
// its token i has position seq_lens[r] - n + i. It attends to the positions up to its own that
// AttentionShape's window allows. The block table has 0, the padding page, for pages before the
// window, and for pages without a block yet, where only drafts have positions. Entries after the
// last page that seq_lens needs are undefined, and must not be read as pages.
// tests/support/attention_cases.h fills them with huge numbers.
struct AttentionBatch {
  PhaseRange decode;                      // short queries, uniform on a GPU: first in the batch
  PhaseRange prefill;                     // all other requests
  HostDev<int32_t> query_start;           // [num_reqs + 1], index of each request's first token
  const int32_t* seq_lens = nullptr;      // device, [num_reqs], exact, including this step's tokens
  std::span<const int32_t> kv_len_bound;  // host, [num_reqs], never below seq_lens
  const int32_t* block_table = nullptr;   // device, [num_reqs, max_pages] page ids
  int64_t max_pages = 0;                  // row stride of block_table
  const int64_t* kv_slots = nullptr;      // device, [num_tokens]; < 0: do not write
  // Device, [num_reqs]. The keys and values of request r's first settled_lens[r] positions were
  // complete in all layers before the first kernel of the step or draft pass. So a kernel may read
  // them while its predecessor still runs. It is 0 for chunks of prompts: another request of the
  // step may write a prefix that they share. Null: 0 for all.
  const int32_t* settled_lens = nullptr;

  const PhaseRange& range(Phase phase) const { return phase == Phase::kDecode ? decode : prefill; }
};

// The attention parameters of one phase of a KV group.
struct AttentionShape {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int head_dim_v = 0;
  bool is_latent = false;  // KvLayout::is_latent
  int page_size = 16;
  DType q = DType::kF32;
  DType kv = DType::kF32;
  DType out = DType::kF32;
  float scale = 1.0F;    // multiplies q·k
  float softcap = 0.0F;  // s := softcap * tanh(s / softcap); 0: off
  int window = 0;        // a query attends to the `window` positions that end with its own; 0: to
                         // all
  // If true, a query attends instead to the positions from the last multiple of `window` up to its
  // own.
  bool chunked = false;
  bool causal = true;
  bool sinks = false;  // one logit per head is added to the softmax's denominator, without a value
  // The widths of each head's keys and values in the expanded form of a latent cache
  // (attn/expansion.h); 0: the model has no expanded form.
  int expanded_key_dim = 0;
  int expanded_value_dim = 0;

  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// Lists what is invalid in this shape for every backend. Each entry is one sentence with the field,
// its value and the expected value.
std::vector<std::string> shape_faults(const AttentionShape& shape);

// The layout of the KV cache for this shape.
inline KvLayout kv_layout(const AttentionShape& shape) {
  return {.page_size = shape.page_size,
          .num_kv_heads = shape.num_kv_heads,
          .head_dim = shape.head_dim,
          .head_dim_v = shape.head_dim_v,
          .is_latent = shape.is_latent,
          .dtype = shape.kv};
}

// The kind of steps that a plan serves. A backend may support some kinds only.
struct AttentionUse {
  Phase phase = Phase::kDecode;
  int q_len = 1;          // decode: upper bound of the query tokens per request
  bool in_graph = false;  // captured once and replayed for other lengths

  friend bool operator==(const AttentionUse&, const AttentionUse&) = default;
};

// Returns "prefill", "decode" or, for example, "decode of 5 query tokens".
std::string describe(const AttentionUse& use);

// The reasons against a backend for a use; none if the backend supports it.
struct Support {
  std::vector<std::string> reasons;
  // Selection skips this backend if another is available, unless the configuration names it.
  std::vector<std::string> reasons_to_prefer_others = {};

  bool ok() const { return reasons.empty(); }
};

// The largest batches that a plan can serve.
struct PlanLimits {
  AttentionUse use;
  int max_num_reqs = 0;    // in a graph: exact
  int max_num_tokens = 0;  // of the phase; in a graph, exactly max_num_reqs * use.q_len
  int max_kv_len = 0;
};

// The arguments of one layer's attention in the plan's phase.
struct AttentionCall {
  TensorView q;    // [num_tokens, num_heads, head_dim], all tokens of the step
  TensorView out;  // [num_tokens, num_heads, head_dim_v]; only the phase's token rows are written
  KvCacheView kv;
  const float* sinks = nullptr;    // [num_heads] logits, if shape.sinks
  std::span<std::byte> workspace;  // AttentionPlan::workspace_bytes, 256-byte aligned on a GPU
};

class ExpandingPlan;

// A plan owns all state between update() and run(), so plans of one backend with equal shapes (of
// two models or two graphs) can be updated and run in any order. The backend must outlive its
// plans.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;

  // The scratch bytes of one run() for any batch within the limits. Successive calls share one
  // workspace.
  virtual size_t workspace_bytes() const = 0;
  // Prepares a step. Called once per step, before any layer runs, for a batch with at least one
  // request in the plan's phase. Must neither allocate nor synchronize, and may read only the upper
  // bounds of the lengths. Its target is 10 µs of host time for 256 requests. It may enqueue copies
  // to the device. The batch's arrays must outlive the step. A plan for a graph is updated before
  // the capture and before each replay. So run() must enqueue the same work for all lengths: it may
  // depend only on the range's numbers of requests and tokens and the batch's device pointers.
  virtual Status update(const AttentionBatch& batch, Stream& stream) = 0;
  // Enqueues the attention of one layer without allocation or synchronization. Must not be called
  // if expanding_plan() is not null. A request of length 0 (padding) gets zeros.
  virtual Status run(const AttentionCall& call, Stream& stream) = 0;
  // Not null: the last update() chose the expanded form (attn/expansion.h), and run_expanded() of
  // the result is called instead of run().
  virtual ExpandingPlan* expanding_plan() { return nullptr; }
};

class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string_view name() const = 0;
  virtual Support supports(const AttentionShape& shape, const AttentionUse& use,
                           const Device& device) const = 0;
  // Called at start for a supported shape and use. Allocates all memory of the plan, or fails if
  // the device lacks it. Loads everything that the first run would otherwise load. Each model and
  // KV group has one plan per graph, and one per phase and candidate backend for eager steps.
  virtual Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                           const PlanLimits& limits) = 0;
};

// A backend's name and the device that it needs. The list includes backends that this build does
// not have, so that their names are not reported as misspelled.
struct BackendName {
  std::string_view name;
  DeviceKind device;
};
std::span<const BackendName> backend_names();

}  // namespace quire
