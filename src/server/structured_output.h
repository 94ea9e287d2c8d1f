// From what a call says of its answer's form to a constraint on the answer's tokens.
#pragma once

#include "server/engine_api.h"
#include "server/service.h"

namespace quire::server {

// Compiles grammars for the engine's tokenizer, which outlives the result. Thread-safe; calls for
// the same grammar share one compilation.
CompileConstraint make_constraint_compiler(const Engine& engine);

// A constraint that begins behind "</think>": until then any token may come. For prompts that open
// a reasoning block; `engine` outlives it.
ConstraintFactory after_reasoning(ConstraintFactory constraint, const EngineApi& engine);

}  // namespace quire::server
