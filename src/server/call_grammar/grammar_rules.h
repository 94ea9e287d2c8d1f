// The EBNF rules of a grammar while it is made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "quire/status.h"
#include "server/openai/requests.h"
#include "server/tools/form.h"
#include "server/tools/token_marker.h"

namespace quire::server {

// EBNF of a form.
struct Sequence {
  std::string ebnf = {};
  bool ends = false;  // with a token that ends the sequence, so nothing follows
};

// All texts and names of rules that it takes and returns are EBNF, unless their comment says
// otherwise. Two rules, `ws` and `key`, always exist: bounded white space and a word.
class GrammarRules {
 public:
  // The grammar requires the tokens of `markers`; `end_ids` end the sequence. Both must outlive it.
  GrammarRules(std::span<const TokenMarker> markers, std::span<const int32_t> end_ids)
      : markers_(markers), end_ids_(end_ids) {}

  // Returns the EBNF of a plain text, with tokens in place of its markers.
  Sequence literal(std::string_view text);
  // Returns the EBNF of a form with a name in its place; none if the form has a pattern.
  std::optional<Sequence> sequence(const Form& form, std::string_view name);

  // Returns the name of a new rule, which begins with `kind`.
  std::string add_rule(std::string_view kind, std::string_view body);
  // Returns the name of a rule for any text that has none of these plain texts.
  std::string text_without(const std::vector<std::string>& others);
  // Returns the name of a rule for the value, whose name is not set.
  std::string value_rule(GrammarValue value);
  // Adds a schema that no rule uses, so that compiling the grammar fails if it cannot be enforced.
  void check_schema(const Tool& tool, std::string schema);

  // Returns the grammar of `root`.
  GrammarSpec take(std::string_view root) &&;

 private:
  std::span<const TokenMarker> markers_;
  std::span<const int32_t> end_ids_;
  GrammarSpec spec_ = {.kind = GrammarSpec::Kind::kComposed};
  std::string rules_;
  int num_rules_ = 0;
  std::map<std::string, std::string> texts_;   // rules by what their texts do not have
  std::map<std::string, std::string> values_;  // rules by their schema
};

std::string alternatives(const std::vector<std::string>& texts);
// Adds a part to a sequence of parts.
void append_part(std::string_view ebnf, std::string& out);

// Errors of a grammar that cannot be made.
Status cannot_write(const Tool& tool, std::string_view what, std::string_view remedy);
Status needs_pattern();

}  // namespace quire::server
