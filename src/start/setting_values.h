// Converts the words of settings to types. The settings must have passed check_settings().
#pragma once

#include <algorithm>
#include <optional>

#include "base/thread_choice.h"
#include "ops/ops.h"
#include "quire/config.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace quire {

bool uses_dummy_weights(const EngineConfig& config);
bool quantizes_at_load(const EngineConfig& config);
// The type of dummy weights; nullopt: the checkpoint's.
std::optional<DType> forced_dtype(const EngineConfig& config);
// nullopt: the type of the weights.
std::optional<DType> forced_kv_dtype(const EngineConfig& config);
// nullopt: a GPU if the build supports it and the machine has one.
std::optional<DeviceKind> forced_device(const EngineConfig& config);
// The ranks of this process. `config` is a result of place_node().
inline int num_local_ranks(const EngineConfig& config) {
  return config.tensor_parallel_size / std::max(config.nnodes, 1);
}
ThreadOptions thread_options(const EngineConfig& config);
InputRounding input_rounding(const EngineConfig& config);
// The type of the checkpoint, or of dummy weights. Activations have the same type if the device
// computes in it.
DType weight_dtype(const EngineConfig& config, std::optional<DType> of_checkpoint);

}  // namespace quire
