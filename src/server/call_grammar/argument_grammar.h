// The grammar of a call's arguments.
#pragma once

#include <string>

#include "server/call_grammar/grammar_rules.h"
#include "server/tools/response_template.h"

namespace quire::server {

// Returns the EBNF of arguments that fit the tool's schema, in the form of the field: from the end
// of the opening form to the start of the closing form. For a Python call, the EBNF includes the
// parenthesis that closes the call. Fails if a part of the schema cannot be written in this form.
Result<std::string> arguments_ebnf(GrammarRules& rules, const TemplateField& field,
                                   const Tool& tool);

}  // namespace quire::server
