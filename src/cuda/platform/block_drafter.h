// The drafter that drafts a block of tokens per sequence in one pass of a model on the same GPU.
//
// write_context() reads all tokens of a step, rejected drafts included, and a block has the same
// number of tokens for every sequence. Graphs can therefore replay both. The block of a sequence
// that is about to end has the full length too; launch_block_pass() describes its last tokens.
#pragma once

#include <memory>

#include "cuda/base/stream.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/platform/cuda_drafter.h"
#include "platform/runner.h"

namespace quire::cuda {

// parts.instance.model has a block_head(). `ops` and `stream` must outlive the drafter.
Result<std::shared_ptr<CudaDrafter>> make_block_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits, CudaOps& ops,
                                                        CudaStream& stream);

}  // namespace quire::cuda
