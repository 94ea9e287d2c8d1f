// What a model will cache and take, known from its configuration before anything is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace quire {

// The layers of one rank by the shape of their attention; queries and outputs are `activation`.
std::vector<KvGroup> make_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation);

// All weights as `dtype`, up to the padding of the device's own arrangement.
int64_t estimate_weight_bytes(const ModelConfig& config, DType dtype);

// The buffers of one step within `limits`.
int64_t estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                  DType activation);

// Elements a token of a step's scratch: attention's inner values, then the MLP's.
int64_t scratch_elements_per_token(const ModelConfig& config, const Parallel& parallel);

}  // namespace quire
