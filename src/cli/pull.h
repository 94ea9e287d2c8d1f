// Downloads the missing model of a command that generates with it.
#pragma once

#include "quire/config.h"
#include "quire/status.h"

namespace quire::cli {

// Downloads engine.model if it is a name of the hub (ORG/NAME[:TAG]) or of `quire pull` (smollm2)
// and is not complete on this machine; prints a line on standard error first. Otherwise does
// nothing, nor for dummy weights, nor if HF_HUB_OFFLINE is set: the engine then reports a missing
// model.
Status pull_missing_model(const EngineConfig& engine);

}  // namespace quire::cli
