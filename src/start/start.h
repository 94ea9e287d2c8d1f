// Turns an EngineConfig into a running engine: settings, files, plan, load, measure, assemble.
#pragma once

#include <memory>

#include "quire/engine.h"
#include "start/speculation.h"

namespace quire {

// Same as Engine::create for an engine with this speculation instead of config.speculative_config,
// but may throw where Engine::create does not.
Result<std::unique_ptr<Engine>> start_engine(const EngineConfig& config,
                                             const Speculation& speculation,
                                             const LoadProgress& progress = {});

}  // namespace quire
