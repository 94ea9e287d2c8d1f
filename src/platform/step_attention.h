// Chooses and updates the attention plans of one model instance's step, and lists them for the
// model.
#pragma once

#include <span>
#include <vector>

#include "platform/runner.h"

namespace quire {

// The plans of one KV group; null when the step has no request in that phase.
struct AttentionChoice {
  AttentionPlan* decode = nullptr;
  AttentionPlan* prefill = nullptr;
};

class StepAttention {
 public:
  // `instance` and the workspace outlive the object.
  StepAttention(const ModelInstance& instance, std::span<std::byte> workspace)
      : instance_(&instance), workspace_(workspace) {}

  // Lets the selectors choose plans for an eager step: one choice per KV group, valid until the
  // next call. `batch` may be that of any block table, because all have the same ranges and
  // lengths.
  std::span<const AttentionChoice> choose(const AttentionBatch& batch);
  // Returns the plans of a decode step in a graph that these backends serve: one choice per KV
  // group, valid until the next call.
  std::span<const AttentionChoice> of_graph(std::span<AttentionBackend* const> backends,
                                            int num_reqs, int q_len);
  // Updates the chosen plans for the batches, one per block table, whose arrays outlive the step.
  // The result is valid until the next call.
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
