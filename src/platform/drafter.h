// Speculation's seam: proposes the tokens with which sequences may go on.
#pragma once

#include <cstdint>

#include "quire/status.h"
#include "sched/batch_plan.h"
#include "tensor/device.h"

namespace quire {

// The rows that sampled in a step, after its tokens were accepted. All pointers are the device's.
struct DraftCall {
  const int32_t* rows = nullptr;  // [num_slices]; < 0: nothing is proposed
  int num_slices = 0;
  // By row: tokens whose keys and values are in the cache.
  const int32_t* num_computed = nullptr;
  // [rows, 1 + num_drafts]: the first of a row is its newest token, at position num_computed; the
  // others are written.
  int32_t* next_tokens = nullptr;
};

// A runner verifies the drafts of one step in the next: a sampled token that equals the draft in
// its place accepts it, so the tokens are those of a run without drafts, whatever is proposed.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Rows leave and enter with this plan, ahead of its step.
  virtual Status update_rows(const BatchPlan& plan, Stream& stream) = 0;
  // Enqueues the proposals that the next step verifies; any token id of the vocabulary.
  virtual Status propose(const DraftCall& call, Stream& stream) = 0;
};

}  // namespace quire
