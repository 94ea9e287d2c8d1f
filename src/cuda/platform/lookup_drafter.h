// Drafts by lookup on a GPU. The host does not have the tokens that the steps in flight sample, so
// the device keeps the tokens of every slot and searches them. update_slots() uploads the known
// tokens of an added slot, and the kernel appends the tokens that each step samples
// (lookup_kernel.h).
#pragma once

#include <cstddef>
#include <memory>

#include "cuda/base/stream.h"
#include "cuda/platform/cuda_drafter.h"

namespace quire::cuda {

// Allocates the drafter's memory, and enqueues its initialization.
Result<std::shared_ptr<CudaDrafter>> make_lookup_drafter(const LookupConfig& config,
                                                         const DrafterLimits& limits,
                                                         CudaStream& stream);
// Device memory that make_lookup_drafter() allocates.
size_t lookup_drafter_bytes(const DrafterLimits& limits);

}  // namespace quire::cuda
