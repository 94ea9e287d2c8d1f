// Compiles grammars into token constraints with XGrammar (Dong et al.,
// https://arxiv.org/abs/2411.15100).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "grammar/grammar_spec.h"
#include "quire/request.h"
#include "quire/status.h"
#include "tokenizer/tokenizer.h"

namespace quire {

struct GrammarStats {
  int64_t num_compiled = 0;  // including refused ones
  int64_t num_hits = 0;      // compiled before, or waited for another call's compilation
  size_t cache_bytes = 0;
  size_t held_bytes = 0;  // of all compiled grammars, cached or in use, and of all parses
};

// One per engine. Thread-safe.
class GrammarCompiler {
 public:
  // Reads the vocabulary, in about 0.1 s for 128 k tokens. `eos_ids` are the tokens that end an
  // answer. If none of them is a token of the tokenizer, every grammar is refused.
  GrammarCompiler(const Tokenizer& tokenizer, std::span<const int32_t> eos_ids,
                  const GrammarLimits& limits = {});
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // May take as long as the limits allow, so it must not run on the engine's thread. Concurrent
  // calls for one grammar share one compilation. invalid_argument says what is wrong with the
  // grammar.
  Result<ConstraintFactory> compile(const GrammarSpec& spec);

  // The constraint of a grammar that was already compiled or refused; never compiles or waits.
  std::optional<Result<ConstraintFactory>> find(const GrammarSpec& spec);

  // Ends running and later compilations with unavailable. Their grammars are not kept as refused.
  // Constraints that exist keep working.
  void stop();

  GrammarStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
