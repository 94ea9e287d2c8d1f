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

// The bytes of a token, which may be half a character: texts show U+FFFD for that, `bytes` what it
// is.
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
  std::string text = {};              // without the prompt's
  ParsedMessage message = {};         // chat: what the text is made of
  std::string_view prompt_text = {};  // with echo; the writer's, shared by a prompt's choices
  std::vector<int32_t> token_ids = {};
  std::vector<PositionLogprobs> logprobs = {};
  std::vector<PositionLogprobs> prompt_logprobs = {};
  SharedTokenIds prompt_token_ids = {};
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_reason = {};
};

std::string completion_body(const AnswerHeader& header, const CompletionCall& call,
                            const std::vector<Choice>& choices, const Usage& usage,
                            const DecodeToken& decode);
// prompt_logprobs and prompt_token_ids are the first choice's.
std::string chat_body(const AnswerHeader& header, const ChatCall& call,
                      const std::vector<Choice>& choices, const Usage& usage,
                      const DecodeToken& decode);

// What chunks of one choice must know of those before. The prompt_… are set before the first chunk
// of a choice, which takes them: prompt_text with echo, the others where the call asks for them.
struct ChoiceStream {
  int index = 0;
  std::string_view prompt_text = {};
  SharedTokenIds prompt_token_ids = {};
  std::vector<PositionLogprobs> prompt_logprobs = {};

  bool has_started = false;
  bool has_tool_calls = false;
  int64_t text_offset = 0;  // of the next token, in characters
};

// Stream chunks: the JSON alone; sse_event() makes an event of it. Appended to `out`, so that a
// chunk of one token costs one buffer. `usage` is null where chunks have none.
void completion_chunk(const AnswerHeader& header, const CompletionCall& call, ChoiceStream& choice,
                      const Output& output, const Usage* usage, const DecodeToken& decode,
                      std::string& out);
// The role, once, before anything else of a choice.
void chat_role_chunk(const AnswerHeader& header, const ChatCall& call, ChoiceStream& choice,
                     const Usage* usage, const DecodeToken& decode, std::string& out);
// Whether there is something to send: a parser may hold an output's text back.
bool chat_chunk_has_news(const ChatCall& call, const MessageDelta& delta, const Output& output);
void chat_chunk(const AnswerHeader& header, const ChatCall& call, ChoiceStream& choice,
                const MessageDelta& delta, const Output& output, const Usage* usage,
                const DecodeToken& decode, std::string& out);
// The last chunk with stream_options.include_usage: no choices.
void completion_usage_chunk(const AnswerHeader& header, const Usage& usage, std::string& out);
void chat_usage_chunk(const AnswerHeader& header, const Usage& usage, std::string& out);

// An event is kSsePrefix, the JSON, kSseSuffix.
inline constexpr std::string_view kSsePrefix = "data: ";
inline constexpr std::string_view kSseSuffix = "\n\n";
std::string sse_event(std::string_view json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace quire::server
