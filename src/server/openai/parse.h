// From the body of a call to what it asks for. Pure; every field that OpenAI's clients or vLLM's
// send is taken, unknown fields are ignored, wrong types are refused with the field's name.
#pragma once

#include <string>
#include <string_view>

#include "quire/status.h"
#include "server/openai/calls.h"

namespace quire::server {

// Caps that no flag changes; the issue of a public server is that its requests are hostile.
struct CallLimits {
  int max_answers = 128;  // n
  int max_logprobs = 20;
  int max_stops = 16;
  int max_biases = 1024;
  int max_prompts = 1024;
  int max_messages = 4096;
  int max_tools = 128;
  size_t max_json_depth = 64;
};

// What went wrong with a call, for OpenAI's error object.
struct CallError {
  int http_status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  std::string param;  // the field, "messages[2].content"; empty: null
  std::string code;   // "model_not_found", "context_length_exceeded", …; empty: null
};

// Either a call or a CallError.
template <typename Call>
struct Parsed {
  Call call;
  std::optional<CallError> error;
};

struct CallDefaults {
  SamplingParams sampling;  // the model's own
  int completion_max_tokens = 16;
  int chat_max_tokens = 0;  // 0: whatever the context leaves
  CallLimits limits;
};

Parsed<CompletionCall> parse_completion_call(std::string_view body, const CallDefaults& defaults);
Parsed<ChatCall> parse_chat_call(std::string_view body, const CallDefaults& defaults);
Parsed<TokenizeCall> parse_tokenize_call(std::string_view body, const CallDefaults& defaults);
Parsed<DetokenizeCall> parse_detokenize_call(std::string_view body, const CallDefaults& defaults);

// A Status as the error of a call: its code's HTTP status and OpenAI's type.
CallError call_error(const Status& status);
std::string error_body(const CallError& error);

}  // namespace quire::server
