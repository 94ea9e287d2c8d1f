// Names the shape of a model for the choices that measurements make.
#pragma once

#include <string>

#include "quire/config.h"

namespace quire {

struct ModelFiles;

// Everything about a model on which its speed depends: its shape, and the types of its weights and
// activations.
std::string model_key(const EngineConfig& config, const ModelFiles& files);

}  // namespace quire
