// HTTP responses for refused calls.
#pragma once

#include "server/http/http.h"
#include "server/openai/api_error.h"

namespace quire::server {

// Returns a response with OpenAI's error object as its body and with `headers`; adds Retry-After to
// a 429 or 503.
http::Response error_response(const ApiError& error, http::Headers headers);

// The error to send when Exchange::respond() returns false.
ApiError answer_too_large();

}  // namespace quire::server
