#pragma once

#include <memory>

#include "quire/engine.h"

namespace quire::cli {

// Engine::create with a bar on standard error while weights are read, and with warnings about what
// is allowed and unwise.
Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config);

}  // namespace quire::cli
