// Finds the tuning table that `tuning_table` asks for.
#pragma once

#include "attn/tuning_table.h"
#include "start/plan_rank.h"

namespace quire {

// The table of this process's first rank. With several nodes, all use the table of node 0. Sending
// rounds its times, so node 0 uses the rounded times too.
Result<TuningTable> find_shared_table(const PlanInputs& in);

}  // namespace quire
