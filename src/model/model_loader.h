#pragma once

#include <memory>

#include "model/model.h"
#include "quire/config.h"
#include "tensor/weight_source.h"

namespace quire {

// Takes every tensor of the configuration's shape out of `source` and packs it for `ops`, which
// must outlive the model; a tensor's memory in the source is released once it is packed. A tensor
// that is missing, of another shape or left over is an error that names it.
Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits,
                                          const LoadProgress& progress = {});

}  // namespace quire
