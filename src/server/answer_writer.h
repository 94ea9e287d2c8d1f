// One call's outputs become what its client reads: chunks as they come, or one body at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/openai/format.h"

namespace quire::server {

// Used by one thread at a time.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // An output of choice `choice_idx` (the prompt's number times n, and the answer's). Appends what
  // the client is to read now.
  virtual void add(int choice_idx, Output&& output, std::string& out) = 0;
  // All choices have ended: appends the rest.
  virtual void finish(std::string& out) = 0;
};

// What a writer must know beside the call itself.
struct AnswerContext {
  AnswerHeader header;
  DecodeToken decode;
  int num_prompt_tokens = 0;              // of all prompts
  std::vector<std::string> prompt_texts;  // of each prompt, with echo
  // Of chat: absent names mean that the answer is content alone.
  AnswerParserConfig parser;
};

// Of the call's prompts only their number counts: they may have been taken out.
std::unique_ptr<AnswerWriter> make_answer_writer(CompletionCall call, AnswerContext context);
// Fails where the parser's name is unknown.
Result<std::unique_ptr<AnswerWriter>> make_answer_writer(ChatCall call, AnswerContext context);

}  // namespace quire::server
