// Errors of requests, and their bodies in the shape of each API.
#pragma once

#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire::server {

struct ApiError {
  int http_status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  std::string param;       // the field, "messages[2].content"; empty: null
  std::string code;        // "model_not_found", "context_length_exceeded", …; empty: null
  std::string cause = {};  // of a 500; logged, never sent to the client
};

// Makes an error with OpenAI's error type for the status.
ApiError make_api_error(int http_status, std::string message, std::string param = "",
                        std::string code = "");
// Converts a Status into the error of a request. A message `[sampling] top_p; …` or
// `[embedding] dimensions; …` sets the param, and `[template] …` the code. The text of an internal
// error is moved to `cause`, which the caller logs and does not send.
ApiError api_error(const Status& status);

// The shape of an error's body, which depends on the API that the client uses.
enum class ErrorShape {
  kOpenAi,     // {"error":{"message","type","param","code"}}
  kAnthropic,  // {"type":"error","error":{"type","message"}}
  kOllama      // {"error":"message"}
};
// Returns the shape for a request's path, so that it is known even if no route is found. OpenAI's
// and Anthropic's APIs both have the path /models; only Anthropic's clients send the header
// anthropic-version.
ErrorShape error_shape(std::string_view path, bool has_anthropic_version = false);
std::string error_body(const ApiError& error, ErrorShape shape = ErrorShape::kOpenAi);
// Returns a description that may be logged. For a 400 or 404 it is only the code (or type) and the
// field, because the message can quote the prompt.
std::string loggable(const ApiError& error);

}  // namespace quire::server
