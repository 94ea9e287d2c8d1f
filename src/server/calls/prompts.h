// From a call to requests that the engine can take.
#pragma once

#include <optional>
#include <vector>

#include "server/calls/call_context.h"
#include "server/openai/parse.h"

namespace quire::server {

CallDefaults call_defaults(const CallContext& context);

// Tokenizes the request's prompt into prompt_token_ids, and refuses what can never fit. max_tokens
// 0: whatever the context leaves.
std::optional<CallError> prepare_prompt(const CallContext& context, Request& request);

// Sets make_constraint. Compiles, so not on the transport's thread.
std::optional<CallError> constrain(const CallContext& context, const StructuredOutput& wanted,
                                   Request& request);

}  // namespace quire::server
