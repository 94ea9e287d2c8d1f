// The recorded drafter of tests/engine/recorded_drafter.h on a GPU: the host never reads a
// sequence's progress.
#pragma once

#include <memory>

#include "cuda/base/stream.h"
#include "engine/recorded_drafter.h"

namespace quire::cuda {

// `outputs` must outlive the drafter.
Result<std::shared_ptr<Drafter>> make_device_drafter(const testing::RecordedOutputs& outputs,
                                                     const DrafterLimits& limits);

}  // namespace quire::cuda
