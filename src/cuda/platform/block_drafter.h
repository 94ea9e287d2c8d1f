// The drafter that drafts a block of tokens per sequence in one pass of a model on the same GPU.
#pragma once

#include <memory>

#include "cuda/base/stream.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/platform/cuda_drafter.h"
#include "platform/runner.h"

namespace quire::cuda {

// parts.instance.model is a BlockHead. `ops` and `stream` outlive the drafter.
Result<std::shared_ptr<CudaDrafter>> make_block_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits, CudaOps& ops,
                                                        CudaStream& stream);

}  // namespace quire::cuda
