// The drafter whose drafts come from a model on the same GPU: an ordinary model, a draft head, or a
// block drafter (block_drafter.h).
#pragma once

#include <memory>

#include "cuda/base/stream.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/platform/cuda_drafter.h"
#include "platform/runner.h"

namespace quire::cuda {

// Fails if an ordinary model's context is shorter than limits.max_model_len. `ops` and `stream`
// must outlive the drafter.
Result<std::shared_ptr<CudaDrafter>> make_model_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits, CudaOps& ops,
                                                        CudaStream& stream);

}  // namespace quire::cuda
