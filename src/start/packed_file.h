// The file of a model's packed weights, which Quire keeps between its runs.
#pragma once

#include <memory>

#include "platform/platform.h"
#include "quire/config.h"
#include "tensor/packed_weights.h"

namespace quire {

struct ModelFiles;

// Opens the packed weights of a model, as `packed_weights` says. Null: none are kept, because they
// are turned off, the weights do not lie in files, the threads of `platform` are several ranks or
// on several nodes, or, with "auto", the model is small or there is no cache directory on a disk.
// Fails if the directory's path is a file.
Result<std::shared_ptr<PackedWeights>> open_packed_weights(const EngineConfig& config,
                                                           const ModelFiles& files,
                                                           const PlatformConfig& platform);

}  // namespace quire
