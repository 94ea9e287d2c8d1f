// The runner of a machine that computes on its own CPU. Each runner has a thread that acts as the
// device, so that the engine thread schedules step N+1 while step N runs, as on a GPU.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/ops/cpu_ops.h"
#include "cpu/ops/rank_group.h"
#include "cpu/platform/host_drafter.h"
#include "platform/adaptive_drafts.h"
#include "platform/batch_inputs.h"
#include "platform/platform.h"
#include "platform/runner.h"
#include "sample/sampler.h"

namespace quire {

// The parts of a CPU context that its runners share.
struct HostDevice {
  explicit HostDevice(int num_threads, const CpuOpsOptions& options = {});
  explicit HostDevice(std::vector<ThreadPlace> places, const StepThreads& threads = {},
                      const CpuOpsOptions& options = {});

  // The number of threads that run a step with this many token rows.
  int num_threads_for(int64_t num_rows) const;

  ThreadPool pool;
  StepThreads step_threads;  // guarded by step_mutex
  std::unique_ptr<Ops> ops;
  RankGroup* ranks = nullptr;  // null: one rank
  int rank = 0;
  // A runner's thread holds this mutex during a step, because the pool, the operations and the
  // workspace are for one step at a time.
  std::mutex step_mutex;
};

class HostRunner final : public Runner {
 public:
  // `device` must outlive the runner.
  static Result<std::unique_ptr<Runner>> create(const RunnerParts& parts, HostDevice& device);
  ~HostRunner() override;

  void enqueue(std::shared_ptr<const BatchPlan> plan) override;
  StepResult wait() override;

 private:
  // State of a sequence that persists between steps.
  struct Slot {
    std::optional<SamplerState> sampler;
    std::vector<std::vector<int32_t>> block_ids;  // by block table
    std::vector<int32_t> prompt_ids;              // kept only for prompt log probabilities
    std::vector<PositionLogprobs> prompt_logprobs;
    Status prompt_error;  // error of the first position whose logits are invalid
  };

  // The best tokens of a logits row, over the parts of all ranks.
  struct RowBest {
    LargestLogit largest;
    ScoredToken drawn;  // the best token by score; only for random sampling
  };

  // The logits of a span's positions: whole rows from logits_row(first_row) on, or only the best
  // tokens of each.
  struct SpanLogits {
    int64_t first_row = 0;
    std::span<const RowBest> best = {};                 // by position; empty: whole rows
    std::span<const std::vector<uint32_t>> masks = {};  // by position; empty: no masks

    std::optional<std::span<const uint32_t>> mask(size_t position) const {
      if (masks.empty()) return std::nullopt;
      return masks[position];
    }
  };

  // A node of the queues below, so that a step moves between them without an allocation.
  struct Step {
    std::shared_ptr<const BatchPlan> plan;
    StepResult result;
  };

  HostRunner(const RunnerParts& parts, HostDevice& device, std::shared_ptr<HostDrafter> drafter,
             Tensor outputs, Tensor draft_probs);

  void device_loop();
  StepResult run_step(const BatchPlan& plan) noexcept;
  StepResult run_step_unguarded(const BatchPlan& plan);
  Status verify_step(const BatchPlan& plan, StepResult& result);
  void update_slots(const BatchPlan& plan);
  void add_slot(const SlotAdded& added);
  Status run_model(const BatchPlan& plan);
  Status collect_prompt_logprobs();
  Status collect_prompt_logprobs(const SeqSpan& span, Slot& slot);
  Status sample(const BatchPlan& plan, std::vector<SpanResult>& results);
  // Samples the spans; their logits rows must fit into outputs_ together.
  Status sample_together(const BatchPlan& plan, std::span<const SeqSpan* const> spans,
                         std::span<SpanResult> results);
  // Replaces the sampling of an embedding model: reads the hidden states of the tokens
  // `token_rows`, one per span.
  Status read_hidden_states(std::span<const int32_t> token_rows,
                            std::span<const SeqSpan* const> spans, std::span<SpanResult> results);
  // Whether the ranks can exchange the best tokens of their parts instead of the logits, because
  // every span's request allows it.
  bool choose_from_parts(std::span<const SeqSpan* const> spans) const;
  // The best tokens of each logits row of the spans; a collective.
  std::vector<RowBest> find_best(std::span<const SeqSpan* const> spans, int num_rows);
  void sample_span(const BatchPlan& plan, const SeqSpan& span, SpanLogits logits,
                   SpanResult& sampled);
  Status match_drafts(const SeqSpan& span, const SpanLogits& logits,
                      std::vector<SampledToken>& tokens);
  Status verify_sampled_drafts(const SeqSpan& span, const SpanLogits& logits,
                               std::vector<SampledToken>& tokens);
  // Replaces the values by the values of rank 0, if measured times decide which drafts are left
  // out.
  void broadcast_from_rank0(std::span<int32_t> values);
  // Lowers num_proposed_ to the drafts whose verification in this step is expected to save time.
  void drop_unprofitable_drafts(const BatchPlan& plan);
  void observe_step(const StepResult& result);
  Status propose_drafts(const BatchPlan& plan, double& seconds);
  // Adds the proposals to the results of the spans that report them.
  void report_drafts(std::span<SpanResult> results);
  void update_progress(int slot_idx);
  std::span<int32_t> next_tokens(int slot_idx);
  std::span<float> draft_probs(int slot_idx, size_t draft_idx);
  std::span<const float> confidences(int slot_idx, int num_drafts) const;
  int32_t& num_proposed(int slot_idx) { return num_proposed_[static_cast<size_t>(slot_idx)]; }
  std::span<const float> logits_row(int64_t i) const;
  Model& model() const { return *parts_.target().model; }

  RunnerParts parts_;
  StepAttention attention_{parts_.target(), parts_.workspace};
  HostDevice& device_;
  std::shared_ptr<HostDrafter> drafter_;  // null: nothing drafts
  // The model's outputs: logits, F32 [max_num_logit_rows, vocab_size], or the hidden states of an
  // embedding model, F32 [max_num_logit_rows, hidden_size].
  Tensor outputs_;
  Tensor draft_probs_;  // HostDraftCall::probs; empty: drafts are not sampled
  std::vector<Slot> slots_;
  // By slot, as in HostDraftCall.
  std::vector<int32_t> num_computed_;
  std::vector<int32_t> next_tokens_;
  std::vector<int32_t> num_proposed_;
  std::vector<float> confidences_;
  // Absent: each step verifies all drafts that it can. Only rank 0 has it, because it decides by
  // measured times; the other ranks use its decisions (broadcast_from_rank0).
  std::optional<AdaptiveDrafts> adaptive_;
  std::vector<SeqSpan> spans_;  // the spans of the running step, as it computes them
  BatchInputs inputs_;
  std::vector<SlotView> slot_views_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Step> queued_;
  std::list<Step> finished_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace quire
