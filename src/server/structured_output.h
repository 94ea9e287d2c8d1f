// From the grammar that restricts an answer to a constraint on the answer's tokens.
#pragma once

#include <functional>
#include <optional>

#include "grammar/grammar_compiler.h"
#include "server/engine_api.h"

namespace quire::server {

// Makes constraints of grammars; as it stands here, refuses all of them. Thread-safe.
struct ConstraintCompiler {
  // May take seconds.
  std::function<Result<ConstraintFactory>(const GrammarSpec&)> compile = [](const GrammarSpec&) {
    return unimplemented("[server] structured output is not served here");
  };
  // What it made of the same before, if that is known at once.
  std::function<std::optional<Result<ConstraintFactory>>(const GrammarSpec&)> find =
      [](const GrammarSpec&) { return std::nullopt; };
  // Makes compilations, running and later ones, end soon as unavailable.
  std::function<void()> stop = [] {};
  std::function<GrammarStats()> stats = [] { return GrammarStats(); };
};

// For the engine's tokenizer. Calls for the same grammar share one compilation.
ConstraintCompiler make_constraint_compiler(const Engine& engine);

// A constraint that begins behind "</think>": until then any token may come. For prompts that open
// a reasoning block; `engine` outlives it.
ConstraintFactory after_reasoning(ConstraintFactory constraint, const EngineApi& engine);

}  // namespace quire::server
