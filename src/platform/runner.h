// A runner executes plans on a device, one step after the other. This header also declares the
// parts that all runners share: the KV cache, and the attention of a step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "attn/plans.h"
#include "kv/kv_layout.h"
#include "model/model.h"
#include "platform/drafter.h"
#include "quire/status.h"
#include "sample/rejection.h"
#include "sched/batch_plan.h"
#include "tensor/tensor.h"

namespace quire {

struct StepResult {
  std::vector<SpanResult> spans;  // one per span that samples, in the plan's order
  Status error;                   // the step failed: none of its results is valid
  // Seconds of the target and of sampling, and of the drafter; both 0 on a GPU without a drafter.
  double verify_seconds = 0;
  double draft_seconds = 0;
};

// One step runs and one is queued. This is enough to hide the host's work. A sequence that has
// ended is computed in at most one step too many.
inline constexpr int kMaxStepsInFlight = 2;

class Runner {
 public:
  virtual ~Runner() = default;

  // Queues a step after the steps already queued (at most kMaxStepsInFlight in total) and returns
  // at once.
  virtual void enqueue(std::shared_ptr<const BatchPlan> plan) = 0;
  // Waits for the oldest step that has not been waited for.
  virtual StepResult wait() = 0;
  // The best number of drafts per sequence, at most max_drafts, for the next step to be planned, if
  // num_decoding sequences decode in it. A runner that leaves out drafts when it runs a step
  // returns max_drafts. Only the thread that enqueues and waits may call it.
  virtual int drafts_worth(int /*num_decoding*/, int max_drafts) const { return max_drafts; }
  // Transfers in the device's stream since the newest runner on it was made. Only the thread that
  // enqueues and waits may call it.
  virtual DeviceTraffic traffic() const { return {}; }
};

// A block table for the memory plan: the size of its blocks, its window, and the kind of content.
struct KvTableBytes {
  int64_t block_bytes = 0;    // over all layers of all groups that share the table
  int window = 0;             // tokens that queries of those groups look back; 0: all
  bool holds_states = false;  // its blocks hold recurrent states
};
// `states` is the target's; a draft model has none.
std::vector<KvTableBytes> kv_table_bytes(std::span<const KvGroup> groups, const StateGroup& states,
                                         int block_size);

// The memory of all blocks. Each layer of each group has its own array of pages, and block i of a
// table is page i in all layers that share the table.
class KvCache {
 public:
  // num_blocks: by block table. Fails if the device lacks the memory.
  static Result<KvCache> allocate(std::span<const KvGroup> groups, const StateGroup& states,
                                  std::span<const int> num_blocks, Ops& ops);

  // The caches of the target that the groups of its drafter read (KvGroup::target_layers). The
  // target's cache must outlive the result.
  static KvCache of_target(std::span<const KvGroup> groups, const KvCache& target,
                           std::span<const KvGroup> target_groups);

  // One view per layer of the group, in the order of KvGroup::layers.
  std::span<const KvCacheView> caches(size_t group_idx) const { return views_[group_idx]; }
  // Index of the group's block table.
  size_t table(size_t group_idx) const { return tables_[group_idx]; }
  // The states of a step; `batches` are by block table.
  StateStep states(std::span<const AttentionBatch* const> batches) const;

 private:
  std::vector<Tensor> memory_;
  std::vector<std::vector<KvCacheView>> views_;
  std::vector<size_t> tables_;
  std::vector<std::byte*> states_;  // by layer of the StateGroup; empty: there are none
  size_t state_table_ = 0;
};

// A model loaded onto one device, with everything that its steps need there. The objects pointed to
// must outlive its runner.
struct ModelInstance {
  Model* model = nullptr;
  const KvCache* kv_cache = nullptr;  // null: the model has neither KV groups nor states
  std::vector<AttentionSelector> attention = {};  // one per KV group
  std::span<const AttentionPlans> plans = {};     // of the same groups, for this instance alone

  StateStep states(std::span<const AttentionBatch* const> batches) const {
    return kv_cache == nullptr ? StateStep() : kv_cache->states(batches);
  }
};

// A model that drafts for the target of a runner. The objects pointed to must outlive the runner.
struct DraftModelParts {
  ModelInstance instance;
  Model* target = nullptr;         // a draft head or block drafter reads its taps
  ModelLimits limits;              // the limits with which the model was loaded
  std::vector<int> windows = {0};  // by block table, of the target and this model
  std::span<std::byte> workspace;
};

// The sizes and options from which Platform::runner_bytes() and the runner compute its memory.
struct RunnerSizes {
  ModelLimits limits;         // the limits with which the target was loaded
  int max_num_seqs = 0;       // in one step: at most limits.max_num_tokens
  int max_num_rule_seqs = 0;  // upper bound of the sequences with rules (has_rules())
  int vocab_size = 0;
  int num_layers = 0;
  std::vector<int> windows = {0};  // by block table: tokens that attention looks back; 0: all
  // Query lengths of decode steps: ascending, and the last is limits.decode_q_len(). A step with
  // another length, up to the last, runs without a graph.
  std::vector<int> decode_q_lens = {1};
  bool enforce_eager = false;  // no graphs
  int num_draft_layers = 0;    // of the draft model; 0: no draft model
  // Tokens per sequence of one pass of the draft model. More than 1: a block drafter, which drafts
  // all tokens of a step in one pass.
  int draft_q_len = 1;
  // Maximum of the columns of a rank's part of a matrix, over all matrices of both models.
  int64_t max_columns = 0;
  // Rows plus columns of the larger one of a head's two matrices in latent attention; 0: none.
  int64_t latent_head_width = 0;
};

// The limits of the drafter of a runner with these sizes.
DrafterLimits drafter_limits(const RunnerSizes& sizes);

// The source of a runner's drafts: none, a lookup, a model, or a drafter that the caller has made
// for the runner's platform.
using DraftSource =
    std::variant<std::monostate, LookupConfig, DraftModelParts, std::shared_ptr<Drafter>>;

// The parts of a runner, all on one device. The objects pointed to must outlive it.
struct RunnerParts {
  ModelInstance instance;  // the target, whose logits are sampled
  RunnerSizes sizes;
  std::span<std::byte> workspace;  // for the attention of the target and the drafter in turn
  // Names everything on which the times of steps depend: the shapes and types of the target and of
  // the drafter. Empty: times are not kept.
  std::string shape_key = {};
  DraftSource drafts = {};         // proposes at most sizes.limits.num_drafts tokens per step
  Verification verification = {};  // of the drafts
  // Parts of the memory budget: reserve_bytes is for graphs and libraries, left_bytes is unplanned.
  int64_t reserve_bytes = 0;
  int64_t left_bytes = 0;

  const ModelInstance& target() const { return instance; }
};

// The plans of one KV group; null when the step has no request in that phase.
struct AttentionChoice {
  AttentionPlan* decode = nullptr;
  AttentionPlan* prefill = nullptr;
};

// Chooses and updates the attention plans of a model instance's steps, one step at a time, and
// makes the KvGroupSteps that the model reads.
class StepAttention {
 public:
  // `instance` and the workspace must outlive the object.
  StepAttention(const ModelInstance& instance, std::span<std::byte> workspace)
      : instance_(&instance), workspace_(workspace) {}

  // Lets the selectors choose plans for an eager step: one choice per KV group, valid until the
  // next call. `batch` may belong to any block table, because all have the same ranges and lengths.
  std::span<const AttentionChoice> choose(const AttentionBatch& batch);
  // Returns the plans of a decode step in a graph: one choice per KV group, by the group's entry of
  // `backends`. Valid until the next call.
  std::span<const AttentionChoice> choose_for_graph(std::span<AttentionBackend* const> backends,
                                                    int num_reqs, int q_len);
  // Updates the chosen plans. There is one batch per block table, whose arrays must outlive the
  // step. The result is valid until the next call.
  Result<std::span<const KvGroupStep>> update(std::span<const AttentionBatch* const> batches,
                                              std::span<const AttentionChoice> choices,
                                              Stream& stream);

 private:
  const ModelInstance* instance_;
  std::span<std::byte> workspace_;
  std::vector<AttentionChoice> choices_;
  std::vector<KvGroupStep> steps_;
};

}  // namespace quire
