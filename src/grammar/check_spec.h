// Refuses specs that would crash or stall XGrammar, or that XGrammar would misread.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar_compiler.h"
#include "quire/status.h"

namespace quire::grammar {

// Returns invalid_argument with the reason. XGrammar may still refuse a spec that passes.
Status check_spec(const GrammarSpec& spec, const GrammarLimits& limits);

// The checks of the parts. `what` names the text in errors: "the regex", "the schema's pattern".
Status check_regex(std::string_view what, std::string_view pattern, const GrammarLimits& limits);
Status check_ebnf(std::string_view text, const GrammarLimits& limits);
Status check_schema(std::string_view json, const GrammarLimits& limits);

// Returns the same schema in the forms that XGrammar enforces; invalid_argument names the keyword
// that XGrammar would ignore. `json` has passed check_schema. The result is stricter than the
// schema in two ways: a schema that has keywords of objects or arrays but no "type" allows only
// objects or arrays, and a pattern matches the whole string. Its size is linear in that of `json`,
// and at most kMaxPlainGrowth * limits.max_text_bytes. The work counts against the thread's
// WorkBudget.
inline constexpr size_t kMaxPlainGrowth = 4;
Result<std::string> plain_schema(std::string_view json, const GrammarLimits& limits);

// Checks an escape whose digits XGrammar reads without a bound: \x…, \u…, \U…, \u{…}.
Status check_escape(std::string_view what, std::string_view at_backslash);

}  // namespace quire::grammar
