// A plan as bytes, for runners of other nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

// The limits that the sizes and indices of a plan are checked against. A plan is not compared with
// earlier plans, because only node 0, which has the nodes' token, sends plans: for example, a
// span's blocks may be missing from its slot's block tables. end_token_ids may be outside of the
// vocabulary; samplers ignore these.
struct PlanBounds {
  int max_num_seqs = 0;
  int max_num_batched_tokens = 0;
  int vocab_size = 0;
  int max_model_len = 0;
  int block_size = 0;
  int num_drafts = 0;                // SchedulerConfig::num_drafts
  std::vector<int> num_blocks = {};  // by block table
};

std::string plan_to_bytes(const BatchPlan& plan);
// kInvalidArgument unless the bytes are a plan within the bounds.
Result<BatchPlan> plan_from_bytes(std::string_view bytes, const PlanBounds& bounds);

}  // namespace quire
