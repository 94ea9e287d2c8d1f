// Finds the tuning table that `tuning_table` asks for.
#pragma once

#include "attn/tuning_table.h"
#include "start/plan_rank.h"

namespace quire {

// The table of this process's first rank. With several nodes it is that of node 0, whose times are
// rounded on the way, so node 0 reads them back too.
Result<TuningTable> find_shared_table(const PlanInputs& in);

}  // namespace quire
