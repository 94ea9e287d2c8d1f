// From an engine's outputs to the bodies and stream chunks of OpenAI's answers. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/engine.h"
#include "server/openai/calls.h"
#include "server/tools/answer_parser.h"

namespace quire::server {

using DecodeToken = std::function<std::string(int32_t token_id)>;

// What every body and chunk of one call repeats.
struct AnswerHeader {
  std::string id;  // "cmpl-…", "chatcmpl-…"
  std::string model;
  int64_t created = 0;  // seconds since the epoch
};

struct Usage {
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  int num_cached_tokens = 0;
  int num_reasoning_tokens = 0;
};

// One finished choice of a call that does not stream: its outputs put together.
struct Choice {
  int index = 0;
  std::string text;            // with echo, after the prompt's
  ParsedMessage message = {};  // chat: what the text is made of
  std::string prompt_text;     // with echo
  std::vector<int32_t> token_ids;
  std::vector<PositionLogprobs> logprobs;
  std::vector<PositionLogprobs> prompt_logprobs;
  std::vector<int32_t> prompt_token_ids;
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_reason;
};

std::string completion_body(const AnswerHeader& header, const CompletionCall& call,
                            const std::vector<Choice>& choices, const Usage& usage,
                            const DecodeToken& decode);
std::string chat_body(const AnswerHeader& header, const ChatCall& call,
                      const std::vector<Choice>& choices, const Usage& usage,
                      const DecodeToken& decode);

// Stream chunks: the JSON alone; sse_event() makes an event of it. `index` is the choice's.
// Appends to `out`, so that a chunk of one token costs one buffer.
void completion_chunk(const AnswerHeader& header, const CompletionCall& call, int index,
                      const Output& output, const Usage* usage, const DecodeToken& decode,
                      std::string& out);
// The role, once, before anything else of a choice.
void chat_role_chunk(const AnswerHeader& header, int index, std::string& out);
void chat_chunk(const AnswerHeader& header, const ChatCall& call, int index,
                const MessageDelta& delta, const Output& output, const Usage* usage,
                const DecodeToken& decode, std::string& out);
void usage_chunk(const AnswerHeader& header, std::string_view object, const Usage& usage,
                 std::string& out);

std::string sse_event(std::string_view json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace quire::server
