// Turns the engine outputs of one request into its HTTP response body: SSE chunks for a stream, or
// one JSON document.
#pragma once

#include <memory>
#include <string>
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

// Reads only the number of the request's prompts, so their text may have been moved out before.
std::unique_ptr<ResponseWriter> make_response_writer(CompletionRequest request, ResponseInfo info);
// Fails if a parser's name is unknown.
Result<std::unique_ptr<ResponseWriter>> make_response_writer(ChatRequest request,
                                                             ResponseInfo info);

}  // namespace quire::server
