// From a call to requests that the engine can take.
#pragma once

#include <optional>
#include <vector>

#include "server/calls/call_context.h"
#include "server/openai/parse.h"

namespace quire::server {

CallDefaults call_defaults(const CallContext& context);

// The bytes that a context of the model's longest tokens has.
size_t max_prompt_bytes(const EngineApi& engine);

// Refuses a text of this size where it cannot fit the model's context. Call it before searching or
// tokenizing the text.
std::optional<CallError> check_prompt_bytes(const CallContext& context, size_t num_bytes);

// Tokenizes the request's prompt into prompt_token_ids, and refuses what can never fit. max_tokens
// 0: whatever the context leaves.
std::optional<CallError> prepare_prompt(const CallContext& context, Request& request);

}  // namespace quire::server
