// The target model's part of a step: its inputs, attention, layers, outputs and sampling. The start
// runs it on padding, and the runner on the steps of requests.
#pragma once

#include <memory>
#include <span>

#include "cuda/ops/cuda_ops.h"
#include "cuda/sample/device_sampler.h"
#include "cuda/step/draft_inputs.h"
#include "cuda/step/step_inputs.h"
#include "platform/runner.h"

namespace quire::cuda {

struct TargetPass {
  // `from`, the objects that it points to, `own_ops` and `own_stream` must outlive the object.
  TargetPass(const RunnerParts& from, CudaOps& own_ops, CudaStream& own_stream)
      : parts(from), ops(own_ops), stream(own_stream) {}
  Status allocate();

  const ModelInstance& instance() const { return parts.target(); }
  Model& model() const { return *instance().model; }
  bool embeds() const { return model().config().embeds; }
  bool divides_logits() const { return model().divides_logits() && !embeds(); }
  TensorView output_rows(int num_rows) const { return outputs.view.rows(0, num_rows); }

  // Runs the layers on the first num_tokens tokens of the buffers.
  Status run_layers(int num_tokens, std::span<const KvGroupStep> steps);
  // Computes the logits of the step's logits rows, or only this rank's part of them, or an
  // embedding model's hidden states.
  Status compute_outputs(int num_rows);
  // Samples the rows. Several ranks exchange the best tokens of their parts if these suffice for
  // every row, and otherwise the whole parts.
  void sample(const SamplePlan& plan);
  // The step that was enqueued last, as the drafter receives it. graph: the shape of its graph;
  // null if it ran eagerly.
  DraftStep draft_step(const GraphBatch* graph, int num_tokens);

  const RunnerParts& parts;
  CudaOps& ops;
  CudaStream& stream;
  StepBuffers buffers;
  AttentionInputs inputs;
  StepAttention attention{parts.target(), parts.workspace};
  // The model's outputs: logits, F32 [max_num_logit_rows, vocab_size], or the hidden states of an
  // embedding model, [max_num_logit_rows, hidden_size] in the type of the activations.
  Tensor outputs;
  std::unique_ptr<DeviceSampler> sampler;
};

}  // namespace quire::cuda
