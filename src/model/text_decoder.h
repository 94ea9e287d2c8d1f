// The model of every family in families.h: decoder layers one after another, whose differences are
// data in DecoderConfig.
#pragma once

#include <memory>
#include <vector>

#include "model/model.h"
#include "model/weights.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

// The checkpoint's tensors of the configuration.
std::vector<TensorSpec> list_decoder_tensors(const ModelConfig& config);

Result<std::unique_ptr<Model>> load_text_decoder(const ModelConfig& config, WeightSource& source,
                                                 Ops& ops, const ModelLimits& limits,
                                                 const LoadOptions& options);

}  // namespace quire
