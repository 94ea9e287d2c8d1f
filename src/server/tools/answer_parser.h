// A model's answer as it streams, taken apart into reasoning, content and tool calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::server {

// A piece of a tool call. The first piece of each call has its id and name; arguments come as text
// that together is a JSON object.
struct ToolCallDelta {
  int index = 0;
  std::string id;  // "call_" and 24 characters; "" after the first piece
  std::string name;
  std::string arguments;
};

struct MessageDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCallDelta> tool_calls;

  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;
};

// A whole answer.
struct ParsedMessage {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> tool_calls;
};

// Fed with new text of one answer in pieces of any size; the deltas do not depend on where the
// pieces are cut, but for where they themselves are. Text that only looks like the start of a
// marker is held back until it is known. What turns out to be no valid call comes as content:
// nothing of the answer is lost.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  virtual MessageDelta feed(std::string_view text) = 0;
  // The answer has ended: whatever was held back.
  virtual MessageDelta finish() = 0;
};

struct AnswerParserConfig {
  std::string tool_call_parser;         // "llama3_json", "hermes", "mistral"; empty: no tool calls
  std::string reasoning_parser;         // "think" …; empty: no reasoning
  std::vector<std::string> tool_names;  // the call's tools: other names are content
  bool starts_in_reasoning = false;     // the template has opened the block already
  bool single_call = false;             // parallel_tool_calls is false
  // An id's 24 characters: tests pass what they can compare with.
  std::string (*make_id)() = nullptr;
};

// Names that the flags take.
const std::vector<std::string>& tool_call_parser_names();
const std::vector<std::string>& reasoning_parser_names();
// Which parsers fit a chat template, by what it writes; empty: none.
std::string detect_tool_call_parser(std::string_view chat_template);
std::string detect_reasoning_parser(std::string_view chat_template);

Result<std::unique_ptr<AnswerParser>> make_answer_parser(const AnswerParserConfig& config);

// A whole text at once.
ParsedMessage parse_answer(AnswerParser& parser, std::string_view text);
// Puts a delta at the end of a message.
void append(ParsedMessage& message, const MessageDelta& delta);

}  // namespace quire::server
