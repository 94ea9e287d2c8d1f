#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"
#include "sched/scheduler.h"
#include "sched/seq_record.h"

namespace quire {

// Turns the scheduler's decisions into a plan: one span for each of `running` that has
// step_tokens. Spans of one token and its drafts come first. Block table entries and slots that the
// plan announces to the device are marked as announced. The sequences' counters already include
// this step.
BatchPlan build_plan(uint64_t step_id, const SchedulerConfig& config,
                     std::span<SeqRecord* const> running);

}  // namespace quire
