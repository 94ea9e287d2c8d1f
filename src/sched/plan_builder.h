#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"
#include "sched/scheduler.h"
#include "sched/seq_record.h"

namespace quire {

// Writes the decisions down: one slice for each of `running` that has step_tokens, those of a token
// and its drafts first. What the plan announces to the device is marked as announced. The
// sequences' counters already include this step.
BatchPlan build_plan(uint64_t step_id, const SchedulerConfig& config,
                     std::span<SeqRecord* const> running);

}  // namespace quire
