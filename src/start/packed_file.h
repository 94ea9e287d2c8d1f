// The file of a model's packed weights, which Quire keeps between its runs.
#pragma once

#include <memory>

#include "platform/platform.h"
#include "quire/config.h"
#include "tensor/packed_weights.h"

namespace quire {

struct ModelFiles;

// Opens the packed weights of a model, according to `packed_weights`. Returns null if none are
// kept: they are turned off, the weights are not in files, or there are several ranks, replicas,
// nodes or NUMA nodes. With "auto", also if the model is small, or if there is no cache directory
// on a disk. Fails if the path of the directory is a file.
Result<std::shared_ptr<PackedWeights>> open_packed_weights(const EngineConfig& config,
                                                           const ModelFiles& files,
                                                           const PlatformConfig& platform);

}  // namespace quire
