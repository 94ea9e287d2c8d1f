// What went wrong with a call, and OpenAI's error object.
#pragma once

#include <string>

#include "quire/status.h"

namespace quire::server {

struct CallError {
  int http_status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  std::string param;       // the field, "messages[2].content"; empty: null
  std::string code;        // "model_not_found", "context_length_exceeded", …; empty: null
  std::string cause = {};  // of a 500: for the log, never for the client
};

// With OpenAI's type for the status.
CallError make_call_error(int http_status, std::string message, std::string param = "",
                          std::string code = "");
// A Status as the error of a call. `[sampling] top_p; …` gives the param, `[template] …` the code;
// what is internal is not told to the client; whoever answers with the error logs its cause.
CallError call_error(const Status& status);
std::string error_body(const CallError& error);
// What a log may say of it. The message of a call's own fault quotes the call, which may be a
// prompt: its code (or type) and its field stand for it.
std::string loggable(const CallError& error);

}  // namespace quire::server
