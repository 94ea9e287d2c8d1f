// A refused call's answer.
#pragma once

#include "server/http/http.h"
#include "server/openai/call_error.h"

namespace quire::server {

// OpenAI's error object as the body; `headers`, and Retry-After with a 429 or 503.
http::Response error_response(const CallError& error, http::Headers headers);

// Where Exchange::respond() had no room for the answer.
CallError answer_too_large();

}  // namespace quire::server
