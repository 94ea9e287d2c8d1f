// A refused call's answer.
#pragma once

#include "server/http/http.h"
#include "server/openai/call_error.h"

namespace quire::server {

// OpenAI's error object, with Retry-After where the client is to come again.
// Of other headers it keeps those given.
http::Response error_response(const CallError& error, http::Headers headers);

}  // namespace quire::server
