#pragma once

#include <memory>
#include <string>

#include "quire/engine.h"

namespace quire::cli {

// Engine::create with a bar on standard error while weights are read, and with warnings about what
// is allowed and unwise.
Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config);

// Known before the first question: whether the model can chat, with this system message where there
// is one, or why not.
Status check_chat_template(const Engine& engine, const std::string& system = "");

}  // namespace quire::cli
