// Turns an EngineConfig into a running engine: settings, files, plan, load, measure, assemble.
#pragma once

#include <memory>

#include "quire/engine.h"
#include "start/speculation.h"

namespace quire {

// Does the work of Engine::create. `speculation` is the parsed config.speculative_config; tests
// pass drafters of their own. May throw, for example if no thread can start or memory is short.
Result<std::unique_ptr<Engine>> start_engine(const EngineConfig& config,
                                             const Speculation& speculation,
                                             const LoadProgress& progress = {});

}  // namespace quire
