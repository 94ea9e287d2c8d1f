// The memory that a model needs, computed from its configuration and its checkpoint's headers
// before anything is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "tensor/weight_source.h"

namespace quire {

// The number of all weights; tied embeddings count once.
int64_t num_parameters(const ModelConfig& config);

// Groups one rank's layers by the shape of their attention; queries and outputs have type
// `activation`.
std::vector<KvGroup> make_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation);

// Bytes of one rank's weights in the types that `ops` keeps, without the padding of the device's
// layout.
int64_t estimate_weight_bytes(const ModelConfig& config, const WeightSource& source, const Ops& ops,
                              const Parallel& parallel);

// Bytes of the buffers of one step within `limits`.
int64_t estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                  DType activation);

}  // namespace quire
