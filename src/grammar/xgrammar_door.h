// The only header of the room that names XGrammar. What it throws stays behind these functions.
#pragma once

#include <xgrammar/xgrammar.h>

#include <memory>

#include "grammar/grammar_spec.h"
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
  size_t num_bytes = 0;  // by XGrammar's own count, without the vocabulary
};

// `spec` has passed check_spec. Costs what the limits allow, whatever the grammar.
Result<std::shared_ptr<const Compiled>> compile_spec(
    const std::shared_ptr<const Vocabulary>& vocabulary, const GrammarSpec& spec,
    const GrammarLimits& limits);

// At the start of an answer.
std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<const Compiled> compiled);

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
