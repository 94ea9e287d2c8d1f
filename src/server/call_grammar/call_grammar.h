// The grammar of a model's tool calls, made from the response template that reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "grammar/grammar_compiler.h"
#include "quire/status.h"
#include "server/openai/requests.h"
#include "server/tools/response_template.h"
#include "server/tools/token_marker.h"

namespace quire::server {

struct CallGrammarInput {
  const ResponseTemplate& calls;
  const ResponseTemplate* reasoning = nullptr;  // null: no reasoning before the calls
  std::span<const Tool> tools;                  // not empty
  bool several = true;                          // several calls are allowed
  std::span<const TokenMarker> markers = {};    // the grammar requires these tokens
  std::span<const int32_t> end_ids = {};        // tokens that end the sequence
  // The start of the first call's opening, which the output already has; the grammar begins after
  // it, without reasoning.
  std::string_view opened = {};
};

// Returns the grammar of an output that is one or more calls, with arguments that fit the schemas,
// and reasoning before them. The template's parser reads each such text as these calls. A value
// that a format writes as plain text cannot contain the texts that end the value. Fails if the
// template has patterns, or if a tool's name or schema cannot be written in its format.
Result<GrammarSpec> call_grammar(const CallGrammarInput& input);

}  // namespace quire::server
