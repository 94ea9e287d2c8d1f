#pragma once

#include <memory>
#include <string>

#include "quire/engine.h"

namespace quire::cli {

// Calls Engine::create with a progress bar on standard error while weights are read, and warns of
// settings that are valid but unwise.
Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config);

// Fails if the model cannot chat, or not with this system message (if any), so that a command
// reports it before the first question.
Status check_chat_template(const Engine& engine, const std::string& system = "");

}  // namespace quire::cli
