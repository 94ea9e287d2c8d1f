// The only header of the room that names XGrammar. What it throws stays behind these functions.
#pragma once

#include <xgrammar/xgrammar.h>

#include <atomic>
#include <memory>

#include "grammar/grammar_spec.h"
#include "grammar/shared_budget.h"
#include "grammar/token_table.h"
#include "quire/request.h"
#include "quire/status.h"

namespace quire::grammar {

// A vocabulary, ready to compile for.
struct Vocabulary {
  TokenTable tokens;
  xgrammar::TokenizerInfo info;
};
Vocabulary make_vocabulary(TokenTable tokens);

struct Compiled {
  std::shared_ptr<const Vocabulary> vocabulary;
  xgrammar::CompiledGrammar grammar;
  GrammarLimits limits;
  HeldMemory held;       // as long as anybody uses it, in the cache or not
  size_t num_bytes = 0;  // by XGrammar's own count, without the vocabulary
};

using CompileResult = Result<std::shared_ptr<const Compiled>>;

// The outcome of a compilation. A refusal for want of time or memory is not final: it depends on
// the moment as well as on the grammar.
struct CompileOutcome {
  CompileResult result;
  bool is_final = true;
};

// Compiles `spec`, which has passed check_spec, within the limits. The compilation ends early, as
// unavailable, once `stop` is set. Throws std::bad_alloc and exceptions that are not std::exception.
CompileOutcome compile_spec(const std::shared_ptr<const Vocabulary>& vocabulary,
                            const GrammarSpec& spec, const GrammarLimits& limits,
                            const std::shared_ptr<SharedMemory>& memory,
                            const std::atomic<bool>& stop);

// At the start of an answer. What it takes is taken from `memory` and `time`, too.
std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<const Compiled> compiled,
                                                         std::shared_ptr<SharedMemory> memory,
                                                         std::shared_ptr<SharedTime> time);

// The warnings that XGrammar gives on this thread while it lives: what it says it leaves out.
class WarningScope {
 public:
  WarningScope();
  ~WarningScope();
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;
  const std::string& first() const { return first_; }

 private:
  friend void note_warning(const std::string& message);
  std::string first_;
};
void note_warning(const std::string& message);

}  // namespace quire::grammar
