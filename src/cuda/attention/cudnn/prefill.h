// cuDNN's attention for prompts: fresh ones, those with a cached prefix, and chunks of long ones,
// which are all the same call. The contexts are copied from their pages first (gather/). An H200
// then reaches 612 instead of 553 TFLOP/s for 8,192 tokens, and FP8 caches are served, too.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/attention/cudnn/sdpa.h"

namespace quire::cuda::cudnn {

// Builds up to 8 SdpaPlans. cuDNN generates a kernel for each, which takes up to 4 s together. The
// plan builds none later.
Result<std::unique_ptr<AttentionPlan>> make_prefill_plan(const AttentionShape& shape,
                                                         const PlanLimits& limits,
                                                         Library& library);

}  // namespace quire::cuda::cudnn
