// Log probabilities of prompts: collected chunk by chunk, over as many steps as a prompt takes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/base/pinned_ring.h"
#include "cuda/sample/device_sampler.h"
#include "model/model.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

struct Prompt {
  std::vector<int32_t> token_ids;
  std::vector<PositionLogprobs> logprobs;  // so far
  Status error;                            // the first position whose logits are broken
};

// A prompt's part of one step. The step owns the prompt too: when its results are read, a later
// step's row may long be another sequence's.
struct PromptChunk {
  std::shared_ptr<Prompt> prompt;
  int num_top = 0;
  int first = 0;        // position in the prompt
  int first_token = 0;  // of the step's tokens, and of its results
  int count = 0;        // of tokens whose successors in the prompt are known
  int span_idx = -1;    // the sampled span that all of it goes out with; -1: not yet
};

class PromptLogprobs {
 public:
  static Result<PromptLogprobs> create(const ModelLimits& limits, int max_num_seqs);
  // What create() allocates on the device.
  static size_t device_bytes(const ModelLimits& limits);
  // Of a step's results on the host: LogprobsResult [max_num_tokens].
  static size_t results_bytes(const ModelLimits& limits);

  // Takes notice of the plan's rows; the chunks whose log probabilities are wanted.
  std::vector<PromptChunk> update(const BatchPlan& plan);
  // After the model ran over the step's tokens: enqueues logits in parts of as many rows as
  // `logits` has (F32 [max_num_logit_rows, vocab_size]), and a copy of each part's results to
  // `host` (pinned).
  Status enqueue(std::span<const PromptChunk> chunks, Model& model, DeviceSampler& sampler,
                 const TensorView& logits, void* host, CudaStream& stream);
  // Reads results that have arrived. Moves a prompt's log probabilities, or its error, into the
  // span that was sampled after it.
  static void read(std::span<const PromptChunk> chunks, const void* host,
                   std::span<SampledSpan> spans);

 private:
  Status upload(std::span<const PromptChunk> chunks, int num_rows, CudaStream& stream);

  std::vector<std::shared_ptr<Prompt>> prompts_;  // [max_num_seqs], by row; null: none is wanted
  PinnedRing ring_;                               // rows of a step's tokens, then their targets
  Buffer targets_;                                // device, int32 [2, max_num_tokens]
  Buffer results_;                                // device, LogprobsResult [max_num_logit_rows]
};

}  // namespace quire::cuda
