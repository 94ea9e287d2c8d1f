// Formats an engine's outputs as the bodies and stream chunks of OpenAI's responses. Pure
// functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "quire/engine.h"
#include "server/openai/requests.h"
#include "server/tools/output_parser.h"

namespace quire::server {

// Returns the bytes of a token, which may be a part of a UTF-8 character. Text fields then show
// U+FFFD, and `bytes` shows the raw bytes.
using DecodeToken = std::function<std::string(int32_t token_id)>;

// The fields that every body and chunk of one response repeats.
struct ResponseHeader {
  std::string id;  // "cmpl-…", "chatcmpl-…"
  std::string model;
  int64_t created = 0;  // seconds since the epoch
  std::string system_fingerprint = {};
};

struct Usage {
  int num_prompt_tokens = 0;
  int num_completion_tokens = 0;
  int num_cached_tokens = 0;
  CacheMiss cache_miss = CacheMiss::kNone;  // of the first prompt with a miss
  int num_reasoning_tokens = 0;
};

// One finished choice of a response that is not streamed, joined from its outputs.
struct Choice {
  int index = 0;
  std::string text = {};              // without the prompt
  ParsedMessage message = {};         // chat only: the parsed text
  std::string_view prompt_text = {};  // with echo; owned by the writer
  std::vector<int32_t> token_ids = {};
  std::vector<PositionLogprobs> logprobs = {};
  std::vector<PositionLogprobs> prompt_logprobs = {};
  SharedTokenIds prompt_token_ids = {};
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_reason = {};
};

std::string completion_body(const ResponseHeader& header, const CompletionRequest& request,
                            const std::vector<Choice>& choices, const Usage& usage,
                            const DecodeToken& decode);
// prompt_logprobs and prompt_token_ids come from the first choice.
std::string chat_body(const ResponseHeader& header, const ChatRequest& request,
                      const std::vector<Choice>& choices, const Usage& usage,
                      const DecodeToken& decode);

// The state of one choice's stream. The prompt_… fields are set before its first chunk, which uses
// and clears them: prompt_text with echo, the others if the request asks for them.
struct ChoiceStream {
  int index = 0;
  std::string_view prompt_text = {};
  SharedTokenIds prompt_token_ids = {};
  std::vector<PositionLogprobs> prompt_logprobs = {};

  bool has_started = false;
  bool has_tool_calls = false;
  bool has_cut_call = false;
  int64_t text_offset = 0;  // of the next token, in characters
};

// The start of every chunk of a stream, up to its list of choices. A stream formats it once,
// because it is the largest part of a chunk with one token.
std::string completion_chunk_head(const ResponseHeader& header);
std::string chat_chunk_head(const ResponseHeader& header);

// Stream chunks are JSON without the framing that sse_event() adds. They are appended to `out`, so
// that a chunk of one token needs no further buffer. `usage` is null if the chunk has none.
void completion_chunk(std::string_view head, const CompletionRequest& request, ChoiceStream& choice,
                      const Output& output, const Usage* usage, const DecodeToken& decode,
                      std::string& out);
// Appends the chunk with the role, which is the first chunk of a choice.
void chat_role_chunk(std::string_view head, const ChatRequest& request, ChoiceStream& choice,
                     const Usage* usage, const DecodeToken& decode, std::string& out);
// Returns whether the output has anything to send; a parser can hold back its text.
bool needs_chat_chunk(const ChatRequest& request, const MessageDelta& delta, const Output& output);
void chat_chunk(std::string_view head, const ChatRequest& request, ChoiceStream& choice,
                const MessageDelta& delta, const Output& output, const Usage* usage,
                const DecodeToken& decode, std::string& out);
// Appends the last chunk of a stream with stream_options.include_usage, which has no choices.
void usage_chunk(std::string_view head, const Usage& usage, std::string& out);

// A server-sent event is kSsePrefix, the JSON and kSseSuffix.
inline constexpr std::string_view kSsePrefix = "data: ";
inline constexpr std::string_view kSseSuffix = "\n\n";
std::string sse_event(std::string_view json);
// Appends an event that has a name, which is also the type in its data. `write(json)` writes the
// other members of the data's object.
template <typename Write>
void append_typed_event(std::string_view type, std::string& out, const Write& write) {
  out += "event: ";
  out += type;
  out += '\n';
  out += kSsePrefix;
  JsonWriter json(out);
  json.begin_object();
  json.field("type", type);
  write(json);
  json.end_object();
  out += kSseSuffix;
}
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace quire::server
