// The limits of a runner's buffers, and the memory that its start allocates.
#pragma once

#include <span>

#include "cuda/sample/sampled_slots.h"
#include "cuda/step/decode_graphs.h"
#include "cuda/step/step_inputs.h"
#include "platform/platform.h"

namespace quire::cuda {

StepLimits step_limits(const RunnerSizes& sizes);
// The result lacks the verification of drafts.
DeviceSamplerLimits sampler_limits(const RunnerSizes& sizes);
// The graphs of the runner's decode steps, not captured yet. `attention`: the target's selectors.
DecodeGraphs decode_graphs(const RunnerSizes& sizes, std::span<const AttentionSelector> attention);

// See Platform::runner_bytes().
RunnerBytes runner_bytes(const RunnerSizes& sizes, std::span<const AttentionSelector> attention);

}  // namespace quire::cuda
