// The runner of a GPU: it enqueues a step without waiting, and reads each step's results once.
// cuda_start.h makes everything that it needs.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "cuda/platform/cuda_start.h"
#include "platform/platform.h"
#include "platform/uniform_drafts.h"

namespace quire::cuda {

class CudaRunner final : public Runner {
 public:
  // See start_runner().
  static Result<std::unique_ptr<Runner>> create(const RunnerParts& parts, CudaOps& ops,
                                                CudaStream& stream);

  void enqueue(std::shared_ptr<const BatchPlan> plan) override;
  StepResult wait() override;
  int drafts_worth(int num_decoding, int max_drafts) const override {
    return step_drafts_.num_verified(num_decoding, max_drafts);
  }
  DeviceTraffic traffic() const override { return stream_.traffic(); }

 private:
  // A step that is enqueued.
  struct Step {
    std::shared_ptr<const BatchPlan> plan;
    Status error;                      // not ok: the step could not be enqueued
    std::vector<PromptChunk> prompts;  // prompts whose log probabilities it computes
    std::vector<SampleRange> ranges;   // the spans that sample, and their logits rows
    int num_rows = 0;                  // logits rows that were sampled, padding included
    bool has_logprobs = false;         // the results include log probabilities
    int num_reported_drafts = 0;       // per span with reports_drafts, in StepResults::next_tokens
    StepResults* results = nullptr;
  };

  explicit CudaRunner(std::unique_ptr<StepParts> parts);
  // Makes the stream's device current on the calling thread.
  Status bind_thread() const { return use_device(stream_.limits().device); }

  Status enqueue_step(Step& step);
  // The graph for the plan, which the target's inputs describe; null if it runs eagerly.
  const DecodeGraph* graph_for(const BatchPlan& plan) const;
  Status run_graph(const Step& step, const DecodeGraph& graph);
  Status run_eagerly(const Step& step);
  Status sample(Step& step);
  // Like sample(), for an embedding model: enqueues the step's one copy to the host.
  void copy_hidden_states(const Step& step);
  // Enqueues the drafter's work after the step. graph: the step's graph; null if it ran eagerly.
  Status draft(Step& step, const DecodeGraph* graph);
  // Copies the proposals to the host if a sequence under a constraint needs them there.
  void report_drafts(Step& step, int num_drafts);

  // Reads the times of a step that has ended.
  static Status read_times(const Step& step, StepResult& result);
  std::vector<SpanResult> read_spans(const Step& step) const;
  // The proposals of a span's slot in the step's results.
  std::vector<int32_t> read_drafts(const Step& step, int slot) const;
  // The hidden state in row `row` of the step's results.
  std::vector<float> read_hidden_state(const Step& step, int row) const;

  std::unique_ptr<StepParts> parts_;
  const RunnerSizes& sizes_ = parts_->runner.sizes;
  CudaStream& stream_ = parts_->stream;
  TargetPass& target_ = parts_->target;
  StepDrafts step_drafts_{sizes_.max_num_seqs};

  size_t next_results_ = 0;
  std::vector<LogitsRowUse> logits_rows_;  // of the step being enqueued

  std::deque<Step> in_flight_;
  // The first failure of any kind. From then on the state of the sequences on the device is
  // unknown, so every later step fails with the same error and none runs.
  Status fault_;
};

}  // namespace quire::cuda
