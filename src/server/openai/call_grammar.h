// The grammar of a model's tool calls, made from the response template that reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "quire/status.h"
#include "server/openai/requests.h"
#include "server/tools/response_template.h"

namespace quire::server {

// A text of a template that is one added token of the tokenizer. The grammar requires the token.
struct MarkerToken {
  std::string text;
  int32_t id = 0;
  bool ends = false;  // it ends the sequence
};

struct CallGrammarInput {
  const ResponseTemplate& calls;
  const ResponseTemplate* reasoning = nullptr;  // null: no reasoning before the calls
  std::span<const Tool> tools;                  // not empty
  bool several = true;                          // several calls are allowed
  std::span<const MarkerToken> markers = {};
  // The start of the first call's opening, which the output already has; the grammar begins after
  // it, without reasoning.
  std::string_view opened = {};
};

// Returns the grammar of an output that is one or more calls, with arguments that fit the schemas,
// and reasoning before them. The template's parser reads each such text as these calls. A value
// that a format writes as plain text cannot have the texts that end it. Error: the template has
// patterns, or a tool's name or schema cannot be written in its format.
Result<GrammarSpec> call_grammar(const CallGrammarInput& input);

// Returns the literals of a template's forms, which may have markers.
std::vector<std::string> literals_of(const ResponseTemplate& dialect);

}  // namespace quire::server
