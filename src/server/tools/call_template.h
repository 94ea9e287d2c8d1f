// Writes calls in a dialect: the reverse of its parser.
#pragma once

#include <string>

#include "server/tools/response_template.h"

namespace quire::server {

// Returns the source of a chat template that writes the variable `calls`, a list of an assistant's
// tool_calls, in this dialect. Its only literals are the dialect's, so only these can become
// control tokens. Empty: a pattern opens the calls or reads their arguments.
std::string call_template(const ResponseTemplate& dialect);

}  // namespace quire::server
