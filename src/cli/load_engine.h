#pragma once

#include <memory>

#include "quire/engine.h"

namespace quire::cli {

// Engine::create with a bar on standard error while weights are read, and with warnings about what
// is allowed and unwise.
Result<std::unique_ptr<Engine>> load_engine(const EngineConfig& config);

// Known before the first question: whether the model can chat, or why not.
Status check_chat_template(const Engine& engine);

}  // namespace quire::cli
