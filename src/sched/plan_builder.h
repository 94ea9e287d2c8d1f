#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"
#include "sched/seq_record.h"

namespace quire {

// Writes the decisions down: one slice for each of `running` that has step_tokens, those of 1 +
// num_drafts tokens first. What the plan announces to the device is marked as announced. The
// sequences' counters already include this step.
BatchPlan build_plan(uint64_t step_id, int num_drafts, std::span<SeqRecord* const> running);

}  // namespace quire
