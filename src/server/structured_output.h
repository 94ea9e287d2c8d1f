// From what a call says of its answer's form to a constraint on the answer's tokens.
#pragma once

#include "server/engine_api.h"
#include "server/service.h"

namespace quire::server {

// Sets what compiles grammars, for the engine's tokenizer. Thread-safe; calls for the same grammar
// share one compilation.
void set_constraint_compiler(const Engine& engine, ServiceConfig& config);

// A constraint that begins behind "</think>": until then any token may come. For prompts that open
// a reasoning block; `engine` outlives it.
ConstraintFactory after_reasoning(ConstraintFactory constraint, const EngineApi& engine);

}  // namespace quire::server
