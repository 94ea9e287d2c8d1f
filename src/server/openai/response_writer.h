// Turns the engine outputs of one request into its HTTP response body: SSE chunks for a stream, or
// one JSON document.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/responses.h"

namespace quire::server {

// Used by one thread at a time.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  // Adds an output of choice `choice_idx` (prompt index * n + sample index). Appends the bytes to
  // send now to `out`; a writer of a whole body appends nothing before finish().
  virtual void add(int choice_idx, Output&& output, std::string& out) = 0;
  // Appends the rest after all choices have ended.
  virtual void finish(std::string& out) = 0;
  // Ends a stream whose request failed, instead of finish(). By default in OpenAI's form.
  virtual void fail(const ApiError& error, std::string& out);
  // The content type of a stream.
  virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }
};

// The data of a response that its request does not contain.
struct ResponseInfo {
  ResponseHeader header;
  DecodeToken decode;
  int num_prompt_tokens = 0;              // of all prompts
  std::vector<std::string> prompt_texts;  // one per prompt; only with echo
  // Chat only. Empty parser names and no forced call: the whole text is content.
  OutputParserConfig parser;
};

// Counts the tokens of a response for its usage field.
class UsageCount {
 public:
  explicit UsageCount(int num_prompt_tokens) { usage_.num_prompt_tokens = num_prompt_tokens; }

  void add(const Output& output, bool is_first_of_prompt) {
    usage_.num_completion_tokens += static_cast<int>(output.token_ids.size());
    if (is_first_of_prompt) add_cached(output);
  }
  void add_cached(const Output& output) {
    usage_.num_cached_tokens += output.num_cached_tokens;
    if (usage_.cache_miss == CacheMiss::kNone) usage_.cache_miss = output.cache_miss;
  }
  void add_reasoning(const Output& output) {
    usage_.num_reasoning_tokens += static_cast<int>(output.token_ids.size());
  }
  const Usage& now() const { return usage_; }

 private:
  Usage usage_;
};

// Returns the parsed text of a sequence's next output, and counts its reasoning tokens. Without a
// parser the whole text is content.
MessageDeltas next_deltas(OutputParser* parser, const Output& output, UsageCount& usage);
// Sets which calls the parser holds until they are whole: all calls of a response that is not
// streamed. In a stream, those of custom tools, because custom_input() needs their whole arguments.
void hold_calls(const ChatRequest& request, OutputParserConfig& config);
// Returns null if the whole text is content. Fails if a parser's name is unknown.
Result<std::unique_ptr<OutputParser>> make_parser_if_needed(const OutputParserConfig& config);

// Reads only the number of the request's prompts, so their text may have been moved out before.
std::unique_ptr<ResponseWriter> make_response_writer(CompletionRequest request, ResponseInfo info);
// Fails if a parser's name is unknown.
Result<std::unique_ptr<ResponseWriter>> make_response_writer(ChatRequest request,
                                                             ResponseInfo info);

}  // namespace quire::server
