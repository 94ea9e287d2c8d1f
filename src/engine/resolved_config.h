// The values of EngineConfig that a plan uses: defaults filled in, and every value checked.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "platform/platform.h"
#include "quire/config.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire {

struct ModelFiles;

// Fails, naming the field of EngineConfig, unless low <= value <= high.
Status in_range(const char* field, int64_t value, int64_t low, int64_t high);

// Fills in the platform's defaults, checks the configuration, and limits its numbers of sequences
// to what a step can compute.
Result<EngineConfig> resolve_config(const EngineConfig& wanted, const ModelConfig& model,
                                    const PlatformDefaults& defaults, int num_drafts);

// Fails if products are to be computed in int8 and no matrix has integers: the CPU multiplies
// integers of quantized matrices by int8 activations; of FP8 it makes floats.
Status check_int8(const EngineConfig& config, const ModelFiles& files);

// The type of the checkpoint, or of dummy weights. Activations have the same type if the device
// computes in it.
DType choose_dtype(const EngineConfig& config, const ModelConfig& model);
Result<DType> choose_kv_dtype(const EngineConfig& config, DType dtype_of_model);
Result<int> choose_max_model_len(const EngineConfig& config, const ModelConfig& model);

}  // namespace quire
