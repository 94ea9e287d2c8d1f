// The drafter of a HostRunner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "platform/batch_inputs.h"
#include "platform/drafter.h"
#include "platform/runner.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

struct HostDevice;

// The slots that sampled in a step, after the step's tokens were accepted.
struct HostDraftCall {
  const int32_t* slots = nullptr;  // [num_spans]; < 0: no proposal for this span
  int num_spans = 0;
  // [num_spans]: upper bound of the proposals for each span: the number that the next step can
  // probably verify.
  const int32_t* num_wanted = nullptr;
  // By slot: number of tokens whose keys and values are in the cache.
  const int32_t* num_computed = nullptr;
  // [slots, 1 + num_drafts]. Entry 0 of a slot is its newest token, at position num_computed; the
  // drafter writes the entries after it. A proposal may be any token id of the vocabulary.
  int32_t* next_tokens = nullptr;
  // By slot: the drafter writes the number of drafts that it proposes, 0 to num_drafts. The entries
  // of next_tokens after them are not read.
  int32_t* num_proposed = nullptr;
  // [slots, num_drafts]: the drafter's confidence in each draft, in [0, 1]; 0 if it has none. It
  // need not be calibrated.
  float* confidences = nullptr;
  // The spans of the step, as they were computed, and the state of their slots before the step.
  std::span<const SeqSpan> spans = {};
  std::span<const SlotView> slot_views = {};
  // F32 [slots, num_drafts, vocab_size], only with Verification::samples_drafts: the distributions
  // of the drafts, which the drafter writes.
  float* probs = nullptr;
};

class HostDrafter : public Drafter {
 public:
  // Applies the plan's removed and added slots, before its step.
  virtual Status update_slots(const BatchPlan& plan) = 0;
  // Makes the proposals that the next step verifies.
  virtual Status propose(const HostDraftCall& call) = 0;
};

// Makes the drafter of a runner; null: nothing drafts. `device` must outlive the drafter.
Result<std::shared_ptr<HostDrafter>> make_drafter(const DraftSource& source,
                                                  const DrafterLimits& limits, HostDevice& device);

}  // namespace quire
