// The interface to XGrammar, and the only header of this folder that includes it. XGrammar's own
// exceptions do not leave these functions.
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

// A vocabulary in the form that XGrammar compiles for.
struct Vocabulary {
  TokenTable tokens;
  xgrammar::TokenizerInfo info;
};
Vocabulary make_vocabulary(TokenTable tokens);

struct Compiled {
  std::shared_ptr<const Vocabulary> vocabulary;
  xgrammar::CompiledGrammar grammar;
  GrammarLimits limits;
  HeldMemory held;       // held while anything uses the grammar, cached or not
  size_t num_bytes = 0;  // as counted by XGrammar, without the vocabulary
};

using CompileResult = Result<std::shared_ptr<const Compiled>>;

// The outcome of a compilation. A refusal for lack of time or memory is not final, because it also
// depends on the load at that moment.
struct CompileOutcome {
  CompileResult result;
  bool is_final = true;
};

// Compiles `spec` within the limits. `spec` must have passed check_spec. Ends early with
// unavailable once `stop` is set. Throws std::bad_alloc and exceptions not derived from
// std::exception.
CompileOutcome compile_spec(const std::shared_ptr<const Vocabulary>& vocabulary,
                            const GrammarSpec& spec, const GrammarLimits& limits,
                            const std::shared_ptr<SharedMemory>& memory,
                            const std::atomic<bool>& stop);

// Creates the constraint of a new answer. Its parse is charged to `memory` and `time`.
std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<const Compiled> compiled,
                                                         std::shared_ptr<SharedMemory> memory,
                                                         std::shared_ptr<SharedTime> time);

// Collects XGrammar's warnings on this thread, which name ignored parts of a grammar.
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
