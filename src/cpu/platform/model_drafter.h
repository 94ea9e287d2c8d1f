// Drafts by a model of its own, for runners that compute on the CPU.
#pragma once

#include <memory>

#include "cpu/platform/host_drafter.h"
#include "cpu/platform/host_runner.h"
#include "platform/runner.h"
#include "quire/status.h"

namespace quire {

// After each step of the target, the model computes the tokens that it has not seen, and then one
// token per draft; a model with a block_head() computes all drafts of a sequence in one pass.
// The model's keys and values are in the pages of the target's blocks. `device` outlives the
// drafter.
Result<std::shared_ptr<HostDrafter>> make_model_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits,
                                                        HostDevice& device);

// The same for a model with a block_head().
Result<std::shared_ptr<HostDrafter>> make_block_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits,
                                                        HostDevice& device);

}  // namespace quire
