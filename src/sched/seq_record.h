#pragma once

#include <memory>
#include <vector>

#include "kv/block_hash.h"
#include "sched/sequence.h"

namespace quire {

// A sequence and the scheduler's private state for it.
struct SeqRecord {
  std::unique_ptr<Sequence> seq;
  bool has_rules = false;  // it holds one of the device's rule tables while it runs

  std::vector<BlockHash> block_hashes;  // of its first full blocks, computed as needed

  // State of the step being planned.
  int step_tokens = 0;
  bool step_samples = false;
  bool step_committed = false;
  bool added_in_step = false;
};

}  // namespace quire
