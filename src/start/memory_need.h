// The memory that an engine needs, computed from its plan without loading anything.
#pragma once

#include <cstdint>

#include "quire/config.h"
#include "quire/status.h"

namespace quire {

struct MemoryNeed {
  bool is_on_gpu = false;
  // The bytes of weights, buffers, reserve and KV cache: of all ranks on a CPU, of the largest rank
  // on GPUs.
  int64_t num_bytes = 0;
  // The smallest free memory with which the start succeeds, with the planned context.
  int64_t least_free_bytes = 0;
  // The free memory from which the plan allocates: of the machine, or of one GPU.
  int64_t free_bytes = 0;
};

// Plans the engine as its start would. Fails as the start would, with kResourceExhausted if the
// free memory is too small. `freed_bytes` of other programs count as free, as if these had ended.
Result<MemoryNeed> plan_memory_need(const EngineConfig& config, int64_t freed_bytes = 0);

}  // namespace quire
