// What the engine will take before it takes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/kv_cache.h"
#include "platform/platform.h"
#include "quire/status.h"

namespace quire {

struct MemoryRequest {
  std::vector<KvTableBytes> tables;
  int block_size = 0;  // tokens
  int max_model_len = 0;
  int max_num_seqs = 0;
  int max_num_batched_tokens = 0;
  int64_t kv_cache_memory = 0;  // bytes; 0: planned
  MemoryBudget budget;          // of the device, at start
  int64_t weight_bytes = 0;
  int64_t activation_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t reserve_bytes = 0;  // for what cannot be known ahead (RunnerBytes)
};

struct MemoryPlan {
  // By block table, with block 0, the padding page. A table of sliding windows has no more blocks
  // than max_num_seqs sequences hold at one time.
  std::vector<int> num_blocks;
  int64_t kv_bytes = 0;
  int64_t num_kv_tokens = 0;  // in the tables that keep everything
  int64_t left_bytes = 0;     // of the budget, beside all of it and the reserve
};

// At least one sequence of max_model_len must fit, else the error says what would.
Result<MemoryPlan> plan_memory(const MemoryRequest& request);

// One line for the log at start.
std::string describe(const MemoryRequest& request, const MemoryPlan& plan);

}  // namespace quire
