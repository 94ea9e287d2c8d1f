// The parts that response bodies and chunks of completions and chats share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/openai/responses.h"

namespace quire::server {

// {"id":…,"object":…,"created":…,"model":…,"choices":[
void begin_body(const ResponseHeader& header, std::string_view object, std::string& out);
// Appends `],"usage":{…}`, or null if the call asked for usage and `usage` is null. Does not append
// the closing `}`.
void end_choices(const StreamOptions& streaming, const Usage* usage, std::string& out);
void append_usage(const Usage& usage, std::string& out);

// Appends `"finish_reason":…,"stop_reason":…`. The stop reason is a string if it is one of the
// request's stop strings, otherwise a token id.
void append_finish(std::string_view finish_reason, std::string_view stop_reason,
                   const SamplingParams& sampling, std::string& out);
// Returns OpenAI's finish reason, or vLLM's where OpenAI has none ("abort").
std::string_view openai_finish_reason(FinishReason reason);

// Appends `,"NAME":[…]` if the call asked for token ids.
void append_token_ids(const GenerationRequest& call, std::string_view name,
                      const std::vector<int32_t>& ids, std::string& out);

}  // namespace quire::server
