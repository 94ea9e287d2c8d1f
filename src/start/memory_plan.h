// Plans the engine's memory before it is allocated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/runner.h"
#include "quire/status.h"
#include "start/sizes.h"

namespace quire {

struct MemoryRequest {
  std::vector<KvTableBytes> tables;
  Sizes sizes;
  int64_t kv_cache_memory = 0;  // bytes; 0: planned
  MemoryBudget budget;          // of the device, at start
  int64_t weight_bytes = 0;
  int64_t activation_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t reserve_bytes = 0;  // for sizes that are not known ahead (RunnerBytes)
};

struct MemoryPlan {
  // By block table, including block 0, the padding page. A table with a sliding window has at most
  // the blocks that max_num_seqs sequences and one step hold at the same time. The other tables get
  // the rest of the memory.
  std::vector<int> num_blocks;
  int64_t kv_bytes = 0;
  int64_t num_kv_tokens = 0;  // in the tables without a window
  int64_t left_bytes = 0;     // unused part of the budget
};

// Fails unless at least one sequence of max_model_len fits; the error states the longest length
// that fits.
Result<MemoryPlan> plan_memory(const MemoryRequest& request);

// Returns the smallest budget.free_bytes with which plan_memory() succeeds, for a request with
// which it has succeeded; 1 / budget.kv_share must be an integer.
int64_t least_free_bytes(const MemoryRequest& request);

// Lowers the plan's numbers of blocks, by block table, to at most num_blocks, because the ranks
// that share a model have equal numbers of blocks.
void limit_blocks(const MemoryRequest& request, std::span<const int> num_blocks, MemoryPlan& plan);

// Returns one line for the log at start.
std::string describe(const MemoryRequest& request, const MemoryPlan& plan);

}  // namespace quire
