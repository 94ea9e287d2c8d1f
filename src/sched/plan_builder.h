#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"
#include "sched/seq_record.h"

namespace quire {

// Writes down what was decided: one slice for each of `running` that has step_tokens, short queries
// first; what the device has not been told yet is marked as told. The sequences' counters already
// include this step.
BatchPlan build_plan(uint64_t step_id, std::span<SeqRecord* const> running);

}  // namespace quire
