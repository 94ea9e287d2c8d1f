// Identifies a model: by its shape for kept measurements, and by its content for nodes.
#pragma once

#include <string>

#include "quire/config.h"
#include "quire/status.h"
#include "tensor/weight_source.h"

namespace quire {

struct ModelFiles;

// Names everything about a model on which its speed depends: its shape, and the types of its
// weights and activations.
std::string model_key(const EngineConfig& config, const ModelFiles& files);

// Digests the names of the tensors, and each file's size and bytes: all bytes of a small file; of a
// large one the first MiB, which has the names and shapes of tensors, and 32 samples, because
// reading a whole checkpoint would take minutes. The build identifies the embedded model.
std::string digest_of(const WeightSource& weights);

// Digests config.json, and hf_quant_config.json if there is one. Returns "none" for a GGUF file,
// which contains its configuration, and for the embedded model, which the build identifies.
Result<std::string> digest_of_config_file(const EngineConfig& config);

}  // namespace quire
