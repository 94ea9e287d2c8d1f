// A plan as bytes, for runners of other nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

// The limits that every index of a plan is checked against.
struct PlanBounds {
  int max_num_seqs = 0;
  int vocab_size = 0;
  int max_model_len = 0;
  std::vector<int> num_blocks = {};  // by block table
};

std::string plan_to_bytes(const BatchPlan& plan);
// kInvalidArgument for bytes that are not those of a plan within the bounds.
Result<BatchPlan> plan_from_bytes(std::string_view bytes, const PlanBounds& bounds);

}  // namespace quire
