// The drafter whose drafts come from a model on the same GPU: an ordinary model, a
// draft head, or a block drafter.
#pragma once

#include <memory>

#include "cuda/base/stream.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/step/draft_inputs.h"
#include "platform/drafter.h"
#include "platform/runner.h"

namespace quire::cuda {

// Fails if the model needs more of a GPU's runner than it has. `ops` and `stream` outlive the
// drafter.
Result<std::unique_ptr<Drafter>> make_model_drafter(const DraftModelParts& parts,
                                                    const DrafterLimits& limits, CudaOps& ops,
                                                    CudaStream& stream);

}  // namespace quire::cuda
