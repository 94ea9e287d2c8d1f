// The parts that the responses of completions and chats share.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "server/openai/responses.h"

namespace quire::server {

// Begins the response's object and its list of choices.
void begin_response(const ResponseHeader& header, std::string_view object, JsonWriter& json);
// Ends the list of choices, but not the object. Then writes `usage`, or null if the request asked
// for usage and `usage` is null.
void end_choices(const StreamOptions& streaming, const Usage* usage, JsonWriter& json);

// Writes finish_reason and stop_reason. An empty reason is null. The stop reason is a string if it
// is one of the request's stop strings, otherwise a token id.
void write_finish(std::string_view finish_reason, std::string_view stop_reason,
                  const SamplingParams& sampling, JsonWriter& json);
// Returns OpenAI's finish reason, or vLLM's where OpenAI has none ("abort").
std::string_view openai_finish_reason(FinishReason reason);

// Writes the field only if the request asked for token ids.
void write_token_ids(const GenerationRequest& request, std::string_view name,
                     const std::vector<int32_t>& ids, JsonWriter& json);

// One token and the log probabilities at its position; null if unknown (a prompt's first token).
struct ScoredToken {
  int32_t id = 0;
  const PositionLogprobs* position = nullptr;
};

void append_scored(const std::vector<int32_t>& ids, const std::vector<PositionLogprobs>& positions,
                   std::vector<ScoredToken>& out);

struct LogprobsStyle {
  int num_top = 0;
  bool as_ids = false;  // true: tokens are "token_id:123"
  const DecodeToken& decode;
};

// Writes {"tokens":[…],"token_logprobs":[…],"top_logprobs":[{token: logprob}…],"text_offset":[…]}.
// `text_offset`, in characters, advances by the tokens' text.
void write_completion_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                               int64_t& text_offset, JsonWriter& json);
// Writes [{"token","logprob","bytes","top_logprobs":[{"token","logprob","bytes"}]}].
void write_scored_tokens(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                         JsonWriter& json);
// Writes {"content":…} with these tokens.
void write_chat_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                         JsonWriter& json);
// Writes [null,{"123":{"logprob","rank","decoded_token"}}].
void write_prompt_logprobs(const std::vector<PositionLogprobs>& positions,
                           const LogprobsStyle& style, JsonWriter& json);

}  // namespace quire::server
