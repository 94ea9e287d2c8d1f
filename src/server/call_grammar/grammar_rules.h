// Collects the EBNF rules of a grammar.
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
  bool ends = false;  // the last token ends the sequence, so nothing follows
};

// All texts and names of rules in its interface are EBNF, unless a comment states otherwise. Two
// rules always exist: `ws`, which is bounded white space, and `key`, which is a word.
class GrammarRules {
 public:
  // The grammar requires the tokens of `markers`, and `end_ids` end the sequence. Both must outlive
  // this object.
  GrammarRules(std::span<const TokenMarker> markers, std::span<const int32_t> end_ids)
      : markers_(markers), end_ids_(end_ids) {}

  // Returns the EBNF of a plain text, with tokens in place of its markers.
  Sequence literal(std::string_view text);
  // Returns the EBNF of a form with `name` in place of {name} and {key}; nullopt if the form has a
  // pattern.
  std::optional<Sequence> sequence(const Form& form, std::string_view name);

  // Returns the name of a new rule, which begins with `kind`.
  std::string add_rule(std::string_view kind, std::string_view body);
  // Returns the name of a rule for any text that contains none of `others`, which are plain texts.
  std::string text_without(const std::vector<std::string>& others);
  // Sets value.rule, and returns this name of the value's rule. Equal values share a rule.
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
  std::map<std::string, std::string> texts_;   // rules of text_without(), by the excluded texts
  std::map<std::string, std::string> values_;  // rules of value_rule(), by kind and texts
};

std::string alternatives(const std::vector<std::string>& texts);
// Adds a part to a sequence of parts.
void append_part(std::string_view ebnf, std::string& out);

// Errors of a grammar that cannot be made.
Status cannot_write(const Tool& tool, std::string_view what, std::string_view remedy);
Status needs_pattern();

}  // namespace quire::server
