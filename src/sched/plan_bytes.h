// A plan as bytes, for runners of other nodes.
#pragma once

#include <string>
#include <string_view>

#include "quire/status.h"
#include "sched/batch_plan.h"
#include "sched/scheduler.h"

namespace quire {

std::string plan_to_bytes(const BatchPlan& plan);
// Fails with kInvalidArgument unless the bytes are a plan whose sizes and indices are within the
// limits of the scheduler and the vocabulary. Does not compare the plan with earlier plans (a
// span's blocks may be missing from its slot's block tables), because only node 0, which has the
// cluster token, sends plans. Samplers ignore end_token_ids that are outside the vocabulary.
Result<BatchPlan> plan_from_bytes(std::string_view bytes, const SchedulerConfig& limits,
                                  int vocab_size);

}  // namespace quire
