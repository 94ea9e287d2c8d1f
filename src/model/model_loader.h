#pragma once

#include <memory>

#include "model/model.h"
#include "quire/config.h"
#include "tensor/weight_source.h"

namespace quire {

// Loads all weights of the configuration from `source` and packs them for `ops`, which must outlive
// the model. A tensor's memory in the source is released once it is packed. Fails, naming the
// tensor, if one is missing, has another shape, or is left over.
Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits,
                                          const LoadProgress& progress = {});

}  // namespace quire
