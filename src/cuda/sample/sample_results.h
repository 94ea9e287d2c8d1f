// What comes back of a step, from the device's words to the engine's.
#pragma once

#include "cuda/sample/row_state.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

// Converts a row's status to a Status; ok for kOk and kPadding. position: index of the token;
// detail: id of the first NaN logit.
Status to_status(RowStatus status, int64_t position, int32_t detail);

// The span whose rows begin with `results`, without the sequence's id, which the device does not
// know. `logprobs`: those of the same rows, or null.
SampledSpan to_sampled_span(const RowResult* results, const LogprobsResult* logprobs);

// The token first, then the most likely; empty where none were asked for.
PositionLogprobs to_position_logprobs(const LogprobsResult& result);

}  // namespace quire::cuda
