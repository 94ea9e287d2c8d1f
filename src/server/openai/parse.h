// From the body of a call to what it asks for. Pure; every field that OpenAI's clients or vLLM's
// send is taken, unknown fields are ignored, wrong types are refused with the field's name, and so
// is a key that any object of the body has twice. null is the same as absent.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "server/openai/call_error.h"
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
  size_t max_listed_ids = size_t{1} << 20;  // allowed and stop ids, times the prompts
  size_t max_json_depth = 64;
  GrammarLimits grammar;  // its sizes; the rest is for whoever compiles it
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
  int chat_max_tokens = 0;         // 0: whatever the context leaves
  std::string_view chat_template;  // its source; empty: nothing is known of it
  CallLimits limits;
};

Parsed<CompletionCall> parse_completion_call(std::string_view body, const CallDefaults& defaults);
Parsed<ChatCall> parse_chat_call(std::string_view body, const CallDefaults& defaults);
Parsed<TokenizeCall> parse_tokenize_call(std::string_view body, const CallDefaults& defaults);
Parsed<DetokenizeCall> parse_detokenize_call(std::string_view body, const CallDefaults& defaults);

// The schema of what a forced call's text must be: the named tool's parameters, or an array of
// {"name", "parameters"} (kRequired; one element where parallel calls are off).
Restriction forced_call_schema(const ChatCall& call);

}  // namespace quire::server
