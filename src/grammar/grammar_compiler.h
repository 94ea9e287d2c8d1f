// Grammars to token constraints, through XGrammar (Dong et al., https://arxiv.org/abs/2411.15100).
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
  int64_t num_compiled = 0;  // refused ones too
  int64_t num_hits = 0;      // found compiled, or waited for another's compilation
  size_t cache_bytes = 0;
  size_t held_bytes = 0;  // by all that is compiled and all parses: in the cache or in use
};

// One an engine. Thread-safe.
class GrammarCompiler {
 public:
  // Reads the vocabulary: some 0.1 s for 128 k tokens. `eos_ids` end an answer; without any of the
  // tokenizer's, every grammar is refused.
  GrammarCompiler(const Tokenizer& tokenizer, std::span<const int32_t> eos_ids,
                  const GrammarLimits& limits = {});
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // May take as long as the limits say: not for the engine's thread. Several calls for the same
  // grammar share one compilation. invalid_argument says what is wrong with the grammar.
  Result<ConstraintFactory> compile(const GrammarSpec& spec);

  // The same for a grammar that was compiled, or refused by XGrammar, before: at once.
  std::optional<Result<ConstraintFactory>> find(const GrammarSpec& spec);

  // Ends running and later compilations as unavailable. Their grammars are not kept as refused;
  // compiled grammars stay in use.
  void stop();

  GrammarStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
