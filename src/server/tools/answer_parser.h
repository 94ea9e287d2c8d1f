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
  std::string id = {};  // "" after the first piece
  std::string name = {};
  std::string arguments = {};
};

struct MessageDelta {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCallDelta> tool_calls = {};

  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

struct ToolCall {
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
};

// A whole answer.
struct ParsedMessage {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCall> tool_calls = {};
};

// Fed with new text of one answer in pieces of any size; the deltas do not depend on where the
// pieces are cut, but for where they themselves are. Text that only looks like the start of a
// marker or of a call is held back until it is known (at most 64 KiB; time is linear). What turns
// out to be no call comes as content, so that nothing is lost but the markers and the white space
// that no text parts from a call. A call is known for one once its name and the `{` of its
// arguments are read; should its JSON break off after that, its arguments end there and the rest is
// content. Of an answer that a grammar forces to be calls nothing is content: what is cut before it
// is known for a call is dropped.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  virtual MessageDelta feed(std::string_view text) = 0;
  // The answer has ended: whatever was held back.
  virtual MessageDelta finish() = 0;
};

// What an answer is, where its grammar makes the model call.
enum class ForcedCall {
  kNo,
  kNamed,  // the arguments of tool_names[0], nothing else
  kAny     // a JSON array of {"name": …, "parameters": …}
};

struct AnswerParserConfig {
  std::string tool_call_parser;         // "llama3_json", "hermes", "mistral"; empty: no tool calls
  std::string reasoning_parser;         // "think"; empty: no reasoning
  std::vector<std::string> tool_names;  // the call's tools: other names are content
  ForcedCall forced = ForcedCall::kNo;  // goes before tool_call_parser
  bool starts_in_reasoning = false;     // the template has opened the block already
  bool single_call = false;             // parallel_tool_calls is false: further calls are dropped
  // 24 random letters and digits, of which ids are made ("call_…"; Mistral's templates want the
  // first nine alone). Tests pass what they can compare with; null: random ones.
  std::string (*make_id)() = nullptr;
};

// Names that the flags take.
const std::vector<std::string>& tool_call_parser_names();
const std::vector<std::string>& reasoning_parser_names();
// Which parsers fit a chat template, by what it writes; empty: none.
std::string detect_tool_call_parser(std::string_view chat_template);
std::string detect_reasoning_parser(std::string_view chat_template);
// The parser's markers are special tokens: answers must be detokenized with them.
bool needs_special_tokens(std::string_view tool_call_parser);
// The rendered prompt ends with the start of a reasoning block.
bool prompt_opens_reasoning(std::string_view prompt);

Result<std::unique_ptr<AnswerParser>> make_answer_parser(const AnswerParserConfig& config);

// A whole text at once.
ParsedMessage parse_answer(AnswerParser& parser, std::string_view text);
// Puts a delta at the end of a message.
void append(ParsedMessage& message, const MessageDelta& delta);

}  // namespace quire::server
