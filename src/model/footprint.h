// Memory that a model caches and takes, known from its configuration and its checkpoint's headers
// before anything is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "tensor/weight_source.h"

namespace quire {

// All weights, tied embeddings counted once.
int64_t num_parameters(const ModelConfig& config);

// One rank's layers by the shape of their attention; queries and outputs are `activation`.
std::vector<KvGroup> make_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation);

// One rank's weights as `ops` keeps them, up to the padding of the device's own arrangement.
int64_t estimate_weight_bytes(const ModelConfig& config, const WeightSource& source, const Ops& ops,
                              const Parallel& parallel);

// The buffers of one step within `limits`.
int64_t estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                  DType activation);

}  // namespace quire
