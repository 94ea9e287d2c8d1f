// Prepares the prompts of a call as requests for the engine.
#pragma once

#include <optional>
#include <vector>

#include "server/calls/call_context.h"
#include "server/openai/requests.h"

namespace quire::server {

RequestDefaults request_defaults(const CallContext& context);

// Returns the size in bytes of a context that is full of the vocabulary's longest token.
size_t max_prompt_bytes(const EngineApi& engine);

// Returns an error if a text of this size cannot fit the model's context. Call it before searching
// or tokenizing the text.
std::optional<ApiError> check_prompt_bytes(const CallContext& context, size_t num_bytes);

// Tokenizes the request's prompt into prompt_token_ids, and returns an error if it can never fit.
// Sets max_tokens to the rest of the context if it is 0.
std::optional<ApiError> prepare_prompt(const CallContext& context, Request& request);

}  // namespace quire::server
