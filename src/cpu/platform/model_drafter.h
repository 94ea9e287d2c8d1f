// The drafters that are models, for runners that compute on the CPU.
#pragma once

#include <memory>

#include "cpu/platform/host_drafter.h"
#include "cpu/platform/host_runner.h"
#include "platform/runner.h"
#include "quire/status.h"

namespace quire {

// Makes a drafter that is a model. After each step of the target, the model computes the tokens
// whose keys and values it lacks; a draft head computes all tokens of the step, from the target's
// states. Each further pass yields one draft per sequence. For a model with a block_head(), calls
// make_block_drafter(). The drafter's keys and values are in the pages of the target's blocks.
// `device` must outlive the drafter.
Result<std::shared_ptr<HostDrafter>> make_model_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits,
                                                        HostDevice& device);

// For a model with a block_head(), which computes all drafts of a step in one pass. Called by
// make_model_drafter(); defined in block_drafter.cc.
Result<std::shared_ptr<HostDrafter>> make_block_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits,
                                                        HostDevice& device);

}  // namespace quire
