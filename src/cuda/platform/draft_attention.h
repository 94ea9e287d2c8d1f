// The parts that drafters with a model share on a GPU: the limits of their steps, the draft
// vocabulary, and the attention of a pass, in a graph and eagerly.
#pragma once

#include <span>

#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "cuda/step/draft_inputs.h"
#include "model/model.h"
#include "platform/runner.h"

namespace quire::cuda {

// The limits of the target's steps that DraftInputs needs.
StepLimits draft_step_limits(const DraftModelParts& parts, int max_num_seqs);

// Copies TapReader::target_ids() to the device; empty if the vocabularies are the same.
Result<Buffer> upload_target_ids(const TapReader& model, CudaStream& stream);

// The plans of one kind of pass.
class DraftAttention {
 public:
  // `parts` and the objects that it points to must outlive this object.
  explicit DraftAttention(const DraftModelParts& parts)
      : parts_(parts), attention_(parts.instance, parts.workspace) {}
  DraftAttention(const DraftAttention&) = delete;
  DraftAttention& operator=(const DraftAttention&) = delete;

  // Plans a pass over `batches`, one per block table. in_graph: whether a graph of the batches'
  // shape replays the pass. The result is valid until the next call.
  Result<std::span<const KvGroupStep>> plan(std::span<const AttentionBatch* const> batches,
                                            bool in_graph, CudaStream& stream);
  // For a pass that only writes keys and values, and so needs no plans.
  Result<std::span<const KvGroupStep>> without_plans(std::span<const AttentionBatch* const> batches,
                                                     CudaStream& stream);

 private:
  const DraftModelParts& parts_;
  StepAttention attention_;
};

}  // namespace quire::cuda
