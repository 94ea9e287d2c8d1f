// What the bodies and chunks of completions and chats have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/openai/format.h"

namespace quire::server {

// {"id":…,"object":…,"created":…,"model":…,"choices":[
void begin_body(const AnswerHeader& header, std::string_view object, std::string& out);
// ],"usage":{…}  — null where the call asked for usage and this chunk has none; without `}`.
void end_choices(const StreamOptions& streaming, const Usage* usage, std::string& out);
void append_usage(const Usage& usage, std::string& out);

// "finish_reason":…,"stop_reason":…
// The stop reason is text where it is one of the request's stop strings, else a token's id.
void append_finish(std::string_view finish_reason, std::string_view stop_reason,
                   const SamplingParams& sampling, std::string& out);
// vLLM's word where OpenAI has none.
std::string_view openai_finish_reason(FinishReason reason);

// ,"token_ids":[…] where the call asks for ids
void append_token_ids(const AnswerCall& call, std::string_view name,
                      const std::vector<int32_t>& ids, std::string& out);

}  // namespace quire::server
