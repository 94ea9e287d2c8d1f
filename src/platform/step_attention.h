// Who computes the attention of a step: chosen, planned, and listed for the model.
#pragma once

#include <span>
#include <vector>

#include "platform/runner.h"

namespace quire {

// Of one KV group; null where the step has no such range.
struct AttentionChoice {
  AttentionBackend* decode = nullptr;
  AttentionBackend* prefill = nullptr;

  friend bool operator==(const AttentionChoice&, const AttentionChoice&) = default;
};

// What the batch's decode range is known by, from the host's upper bounds.
DecodeKey decode_key(const AttentionBatch& batch);

class StepAttention {
 public:
  explicit StepAttention(const RunnerParts& parts) : parts_(&parts) {}

  // For a step that no graph holds, by the selectors: one a KV group.
  std::vector<AttentionChoice> choose(const AttentionBatch& batch) const;
  // Lets those who were chosen plan the batch, which outlives the step. What is returned is valid
  // until the next call.
  Result<std::span<const KvGroupStep>> plan(const AttentionBatch& batch,
                                            std::span<const AttentionChoice> choices,
                                            Stream& stream);

 private:
  const RunnerParts* parts_;
  std::vector<KvGroupStep> steps_;
};

}  // namespace quire
