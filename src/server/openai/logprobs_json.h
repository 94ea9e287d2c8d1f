// Formats log probabilities for completions, chats and vLLM's prompt_logprobs.
#pragma once

#include <string>
#include <vector>

#include "server/openai/responses.h"

namespace quire::server {

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

// Appends {"tokens":[…],"token_logprobs":[…],"top_logprobs":[{token: logprob}…],"text_offset":[…]}.
// `text_offset`, in characters, advances by the tokens' text.
void append_completion_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                                int64_t& text_offset, std::string& out);
// Appends {"content":[{"token","logprob","bytes","top_logprobs":[{"token","logprob","bytes"}]}]}.
void append_chat_logprobs(const std::vector<ScoredToken>& tokens, const LogprobsStyle& style,
                          std::string& out);
// Appends [null,{"123":{"logprob","rank","decoded_token"}}].
void append_prompt_logprobs(const std::vector<PositionLogprobs>& positions,
                            const LogprobsStyle& style, std::string& out);

}  // namespace quire::server
