// cuDNN's attention for prompts. New prompts, prompts with a cached prefix and chunks of long
// prompts use the same call. The contexts are copied from their pages first (gather/). With 8,192
// tokens, an H200 then reaches 612 instead of 553 TFLOP/s, and FP8 caches are supported.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/attention/cudnn/sdpa.h"

namespace quire::cuda::cudnn {

// Builds up to 8 SdpaPlans. cuDNN generates a kernel for each, which takes up to 4 s in total. The
// plan builds no further SdpaPlans later.
Result<std::unique_ptr<AttentionPlan>> make_prefill_plan(const AttentionShape& shape,
                                                         const PlanLimits& limits,
                                                         Library& library);

}  // namespace quire::cuda::cudnn
