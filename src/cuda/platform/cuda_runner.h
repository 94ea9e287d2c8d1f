// The runner of a GPU: it enqueues a step without waiting, and reads each step's results once.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/platform/draft_stage.h"
#include "cuda/platform/prompt_logprobs.h"
#include "cuda/sample/device_sampler.h"
#include "cuda/step/decode_graphs.h"
#include "cuda/step/step_inputs.h"
#include "platform/platform.h"
#include "platform/uniform_drafts.h"

namespace quire::cuda {

class CudaRunner final : public Runner {
 public:
  // Captures the graphs of decode steps unless sizes.enforce_eager. `parts` is copied; the objects
  // that it points to, `ops` and `stream` must outlive the runner.
  static Result<std::unique_ptr<Runner>> create(const RunnerParts& parts, CudaOps& ops,
                                                CudaStream& stream);
  ~CudaRunner() override;
  // Device memory that create() allocates, besides the logits.
  static RunnerBytes device_bytes(const RunnerSizes& sizes,
                                  std::span<const AttentionSelector> attention);

  void enqueue(std::shared_ptr<const BatchPlan> plan) override;
  StepResult wait() override;
  int drafts_worth(int num_decoding, int max_drafts) const override {
    return step_drafts_.num_verified(num_decoding, max_drafts);
  }
  DeviceTraffic traffic() const override { return stream_.traffic(); }

 private:
  struct StepTimers {
    Stopwatch verify;  // the target and sampling
    Stopwatch draft;   // the drafter
  };
  // Host memory and timers of one step in flight.
  struct Results {
    Buffer sampled;          // pinned; an embedding model's hidden states
    Buffer prompt_logprobs;  // pinned, PromptLogprobs::results_bytes
    Buffer next_tokens;      // pinned, DeviceSampler::next_tokens(); empty without a drafter
    CudaEvent arrived;
    std::optional<StepTimers> timers;  // absent without a drafter
  };
  // A step that is enqueued.
  struct Step {
    std::shared_ptr<const BatchPlan> plan;
    Status error;                      // not ok: the step could not be enqueued
    std::vector<PromptChunk> prompts;  // prompts whose log probabilities it computes
    std::vector<SampleRange> ranges;   // the spans that sample, and their logits rows
    int num_rows = 0;                  // logits rows that were sampled, padding included
    bool has_logprobs = false;         // the results include log probabilities
    int num_reported_drafts = 0;       // per span with reports_drafts, in Results::next_tokens
    Results* results = nullptr;
  };

  CudaRunner(const RunnerParts& parts, CudaOps& ops, CudaStream& stream);
  // Makes the stream's device current on the calling thread.
  Status bind_thread() const { return use_device(stream_.limits().device); }
  const ModelInstance& target() const { return parts_.target(); }
  Status allocate();
  Status start();
  // Runs a step with the largest number of rows, so that everything that is initialized on first
  // use is initialized, and measures every matrix product in every row bucket.
  Status warm_up();
  // Samples padding from parts of the logits, greedily and randomly, so that CUDA loads these
  // kernels before a step: the first use of a kernel waits for the device, and so for the other
  // ranks.
  Status warm_up_choice();
  // Runs padding-only prompts through every candidate prefill backend, so that CUDA loads their
  // kernels before the first request.
  Status warm_up_prompts();
  Status run_padded_prompt(int num_tokens, std::span<const AttentionChoice> choices);
  // Measures the products of the drafter's model, captures its graphs, and measures what steps with
  // drafts cost.
  Status start_drafter();
  // Uploads a batch of padding alone, and describes it in attention_inputs_.
  Status upload_padding(const GraphBatch& batch);
  // The same, and derives the batch's arrays.
  Status derive_padding(const GraphBatch& batch);
  // First runs a step with each combination of backends, because a library may initialize on first
  // use what it must not initialize within a capture.
  Status capture_graphs();
  Result<CudaGraph> capture(const DecodeGraph& graph);
  // Measures the steps and proposals that an adaptive runner chooses between, on all ranks at the
  // same time, and takes the times of rank 0.
  Status measure_drafts();
  // The plans for attention_inputs_, which is padded to the graph.
  std::span<const AttentionChoice> choices_of(const DecodeGraph& graph);
  // Uploads and plans a batch of padding alone.
  Result<std::span<const KvGroupStep>> plan_padding(const DecodeGraph& graph);
  // Runs the model on num_tokens tokens of padding, of which the graph's batch describes the first
  // ones to attention, and computes the logits of that batch.
  Status run_padding(const DecodeGraph& graph, int num_tokens);

  Status enqueue_step(Step& step);
  // The graph for the plan, which attention_inputs_ describes; null if it runs eagerly.
  const DecodeGraph* graph_for(const BatchPlan& plan) const;
  Status run_graph(const Step& step, const DecodeGraph& graph);
  Status run_eagerly(const Step& step);
  Status run_model(int num_tokens, std::span<const KvGroupStep> steps);
  // Computes the logits of the step's logits rows, or only this rank's part of them, or an
  // embedding model's hidden states.
  Status compute_outputs(int num_rows);
  Status sample(Step& step);
  // Samples the rows. Several ranks exchange the best tokens of their parts if this is enough for
  // every row, and otherwise the parts.
  void sample_rows(const SamplePlan& plan);
  // The same for an embedding model: enqueues the step's one copy to the host.
  void copy_hidden_states(const Step& step);
  // Enqueues the drafter's work after the step. graph: the step's; null if it ran eagerly.
  Status draft(Step& step, const DecodeGraph* graph);
  // Copies the proposals to the host if a sequence under a constraint needs them there.
  void report_drafts(Step& step, int num_drafts);
  // The proposals of a span's slot in the step's results.
  std::vector<int32_t> read_drafts(const Step& step, int slot) const;
  // Reads the times of a step that has ended.
  static Status read_times(const Step& step, StepResult& result);
  // The step that was enqueued last, as the drafter receives it. graph: the shape of its graph;
  // null if it ran eagerly.
  DraftStep draft_step(const GraphBatch* graph, int num_tokens);
  std::vector<SpanResult> read_spans(const Step& step) const;
  // The hidden state in row `row` of the step's results.
  std::vector<float> read_hidden_state(const Step& step, int row) const;
  TensorView outputs(int num_rows) const { return outputs_.view.rows(0, num_rows); }
  bool embeds() const { return target().model->config().embeds; }
  bool divides_logits() const { return target().model->divides_logits() && !embeds(); }
  // Tokens of a slot in DeviceSampler::next_tokens().
  int num_next_tokens() const { return parts_.sizes.limits.decode_q_len(); }
  size_t next_tokens_bytes() const;

  RunnerParts parts_;
  CudaOps& ops_;
  CudaStream& stream_;
  StepBuffers buffers_;
  AttentionInputs attention_inputs_;
  StepAttention step_attention_{parts_.target(), parts_.workspace};
  DecodeGraphs graphs_;
  StepDrafts step_drafts_;
  DraftStage draft_stage_;
  std::unique_ptr<DeviceSampler> sampler_;
  PromptLogprobs prompt_logprobs_;
  // The model's outputs: logits, F32 [max_num_logit_rows, vocab_size], or the hidden states of an
  // embedding model, [max_num_logit_rows, hidden_size] in the type of the activations.
  Tensor outputs_;

  std::vector<Results> results_;
  size_t next_results_ = 0;
  std::vector<LogitsRowUse> logits_rows_;  // of the step being enqueued

  std::deque<Step> in_flight_;
  // The first failure of any kind. From then on the state of the sequences on the device is
  // unknown, so every later step fails with the same error and none runs.
  Status fault_;
};

}  // namespace quire::cuda
