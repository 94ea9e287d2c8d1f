// Errors as OpenAI's clients read them.
#pragma once

#include <string_view>

#include "server/http/http.h"

namespace quire::http {

// {"error": {"message", "type", "param": null, "code"}}; the type follows from the status.
Response error_response(int status, std::string_view code, std::string_view message);

}  // namespace quire::http
