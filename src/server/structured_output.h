// Turns a grammar that restricts a sequence's text into a constraint on its tokens.
#pragma once

#include <functional>
#include <optional>

#include "grammar/grammar_compiler.h"
#include "server/engine_api.h"

namespace quire::server {

// Compiles grammars into token constraints. The default object refuses every grammar. Thread-safe.
struct ConstraintCompiler {
  // Compiles a grammar, which may take seconds.
  std::function<Result<ConstraintFactory>(const GrammarSpec&)> compile = [](const GrammarSpec&) {
    return unimplemented("[server] structured output is not served here");
  };
  // Returns the cached result for the same grammar, if there is one; does not compile.
  std::function<std::optional<Result<ConstraintFactory>>(const GrammarSpec&)> find =
      [](const GrammarSpec&) { return std::nullopt; };
  // Makes running and later compilations end soon with the error unavailable.
  std::function<void()> stop = [] {};
  std::function<GrammarStats()> stats = [] { return GrammarStats(); };
};

// Makes a compiler for the engine's tokenizer. Calls with the same grammar share one compilation.
ConstraintCompiler make_constraint_compiler(const Engine& engine);

// Returns a constraint that takes effect after "</think>"; before that every token is allowed. For
// prompts that open a reasoning block. `engine` must outlive it.
ConstraintFactory after_reasoning(ConstraintFactory constraint, const EngineApi& engine);

}  // namespace quire::server
