// The interface of a drafter, which proposes draft tokens for speculative decoding.
#pragma once

#include <cstdint>

#include "quire/status.h"
#include "sched/batch_plan.h"
#include "tensor/device.h"

namespace quire {

// The slots that sampled in a step, after the step's tokens were accepted. All pointers are to
// device memory.
struct DraftCall {
  const int32_t* slots = nullptr;  // [num_spans]; < 0: no proposal for this span
  int num_spans = 0;
  // By slot: number of tokens whose keys and values are in the cache.
  const int32_t* num_computed = nullptr;
  // [slots, 1 + num_drafts]. Entry 0 of a slot is its newest token, at position num_computed; the
  // drafter writes the others.
  int32_t* next_tokens = nullptr;
};

// A runner verifies the drafts of one step in the next step: a draft is accepted if it equals the
// token sampled at its position. Therefore the output is the same as without drafts, whatever the
// drafter proposes.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Applies the plan's removed and added slots, before its step.
  virtual Status update_slots(const BatchPlan& plan, Stream& stream) = 0;
  // Enqueues the proposals that the next step verifies. A proposal may be any token id of the
  // vocabulary.
  virtual Status propose(const DraftCall& call, Stream& stream) = 0;
};

}  // namespace quire
