// Runs one sequence on a runner of its own, without an engine: for probes and for calibration.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/runner.h"
#include "quire/request.h"
#include "quire/status.h"
#include "sched/scheduler.h"

namespace quire {

// Computes a prompt and one greedy token after it, and returns the result of that token. Replaces
// the temperature and the number of tokens of `params`. Fails if a step fails; the result may have
// an error, too.
Result<SpanResult> run_sequence(Runner& runner, const SchedulerConfig& config,
                                const std::vector<int32_t>& prompt, SamplingParams params = {});

}  // namespace quire
