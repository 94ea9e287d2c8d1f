// Converts a step's results from the device's layout to the scheduler's types.
#pragma once

#include "cuda/sample/row_state.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

// Converts a row's status to a Status; ok for kOk and kPadding. position: index of the token;
// detail: id of the first NaN logit.
Status to_status(RowStatus status, int64_t position, int32_t detail);

// The span whose rows begin with `results`, without the sequence's id, which is not on the device.
// `logprobs`: log probabilities of the same rows, or null.
SampledSpan to_sampled_span(const RowResult* results, const LogprobsResult* logprobs);

// The token first, then the most likely ones; empty if none were requested.
PositionLogprobs to_position_logprobs(const LogprobsResult& result);

}  // namespace quire::cuda
