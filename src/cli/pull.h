// Downloads the model of a command that talks to it.
#pragma once

#include "quire/config.h"
#include "quire/status.h"

namespace quire::cli {

// Downloads engine.model if it is a name of the hub (ORG/NAME[:TAG]) or of `quire pull` (smollm2)
// and is not complete on this machine, after a line on standard error that says so. Does nothing
// otherwise, for dummy weights, and if HF_HUB_OFFLINE is set: the engine then reports what is
// wrong.
Status pull_missing_model(const EngineConfig& engine);

}  // namespace quire::cli
