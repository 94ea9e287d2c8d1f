// Log probabilities of prompts, collected over the steps that compute a prompt's chunks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/sample/device_sampler.h"
#include "model/model.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

struct Prompt {
  std::vector<int32_t> token_ids;
  std::vector<PositionLogprobs> logprobs;  // so far
  Status error;                            // of the first position with invalid logits
};

// A prompt's part of one step. It shares ownership of the prompt, because another sequence may have
// the slot when the step's results are read.
struct PromptChunk {
  std::shared_ptr<Prompt> prompt;
  int num_top = 0;
  int first = 0;        // position in the prompt
  int first_token = 0;  // index among the step's tokens, and among its results
  int count = 0;        // tokens whose successors in the prompt are known
  int span_idx = -1;    // the sampled span that returns the prompt's results; -1: in a later step
};

class PromptLogprobs {
 public:
  static Result<PromptLogprobs> create(const ModelLimits& limits, int max_num_seqs);
  // Bytes that create() allocates on the device.
  static size_t device_bytes(const ModelLimits& limits);
  // Bytes of a step's results on the host: LogprobsResult [max_num_tokens].
  static size_t results_bytes(const ModelLimits& limits);

  // Updates the prompts by slot, and returns the chunks whose log probabilities are requested.
  std::vector<PromptChunk> update(const BatchPlan& plan);
  // Runs after the model's layers have computed the step's tokens. Enqueues logits in parts of as
  // many rows as `logits` has (F32 [max_num_logit_rows, vocab_size]), and a copy of each part's
  // results to `host` (pinned).
  Status enqueue(std::span<const PromptChunk> chunks, Model& model, DeviceSampler& sampler,
                 const TensorView& logits, void* host, CudaStream& stream);
  // Reads the results of a finished step. Moves a prompt's log probabilities, or its error, into
  // the span that was sampled after the prompt.
  static void read(std::span<const PromptChunk> chunks, const void* host,
                   std::span<SpanResult> spans);

 private:
  Status upload(std::span<const PromptChunk> chunks, int num_rows, CudaStream& stream);

  std::vector<std::shared_ptr<Prompt>> prompts_;  // [max_num_seqs], by slot; null: not requested
  // A step's num_rows token indices, then their num_rows targets: int32 [2 * max_num_tokens], of
  // which the step uses the first 2 * num_rows. The ring's slots on the host have the same layout.
  PinnedRing ring_;
  Buffer targets_;
  Buffer results_;  // device, LogprobsResult [max_num_logit_rows]
};

}  // namespace quire::cuda
