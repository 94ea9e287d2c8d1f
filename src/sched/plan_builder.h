#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"
#include "sched/scheduler.h"
#include "sched/seq_record.h"

namespace quire {

// Turns the scheduler's decisions into a plan: one slice for each of `running` that has
// step_tokens. Slices of one token and its drafts come first. Block table entries and rows that the
// plan announces to the device are marked as announced. The sequences' counters already include
// this step.
BatchPlan build_plan(uint64_t step_id, const SchedulerConfig& config,
                     std::span<SeqRecord* const> running);

}  // namespace quire
