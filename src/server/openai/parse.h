// Parses the bodies of calls. Pure functions. They accept every field that OpenAI's clients or
// vLLM's send, ignore unknown fields, and treat null as absent. They refuse a wrong type, with the
// field's name, and a key that occurs twice in any object of the body.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "server/openai/call_error.h"
#include "server/openai/calls.h"

namespace quire::server {

// Fixed limits that protect a public server against hostile requests; no flag changes them.
struct CallLimits {
  int max_answers = 128;  // n
  int max_logprobs = 20;
  int max_stops = 16;
  int max_biases = 1024;
  int max_prompts = 1024;
  int max_messages = 4096;
  int max_tools = 128;
  size_t max_listed_ids = size_t{1} << 20;  // allowed and stop ids, times the number of prompts
  size_t max_json_depth = 64;
  GrammarLimits grammar;  // only its sizes are checked here; the grammar compiler checks the rest
};

// Either a call or a CallError.
template <typename Call>
struct Parsed {
  Call call;
  std::optional<CallError> error;
};

struct CallDefaults {
  SamplingParams sampling;  // the model's defaults
  int completion_max_tokens = 16;
  int chat_max_tokens = 0;         // 0: the rest of the context
  std::string_view chat_template;  // source text; empty: unknown
  CallLimits limits;
};

Parsed<CompletionCall> parse_completion_call(std::string_view body, const CallDefaults& defaults);
Parsed<ChatCall> parse_chat_call(std::string_view body, const CallDefaults& defaults);
Parsed<TokenizeCall> parse_tokenize_call(std::string_view body, const CallDefaults& defaults);
Parsed<DetokenizeCall> parse_detokenize_call(std::string_view body, const CallDefaults& defaults);

// Returns the schema of a forced call's text: the named tool's parameters, or an array of {"name",
// "parameters"} for kRequired, with exactly one element if parallel_tool_calls is false.
Restriction forced_call_schema(const ChatCall& call);

}  // namespace quire::server
