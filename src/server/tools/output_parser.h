// Splits a model's output, as it streams, into reasoning, content and tool calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::server {

struct ResponseTemplate;

// A piece of a tool call. The first piece of each call has its id and name. The pieces' arguments,
// joined, are the text of a JSON object.
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

// The whole output of one sequence.
struct ParsedMessage {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCall> tool_calls = {};
};

// Parses the text of one sequence in pieces of any size. The joined deltas do not depend on where
// the text is cut. Text that could be the start of a marker or of a call is held back until it is
// decided (at most 64 KiB; the time is linear). Text that turns out to be no call becomes content,
// except markers and the white space next to calls. A call is recognized once its name and the
// start of its arguments are read. Slips in the arguments are repaired: raw control characters and
// invalid escapes in strings, and closing brackets that are missing before the end of the call. If
// the arguments are invalid otherwise, they end there and the rest is content. A call within
// reasoning is a call if the reasoning does not end. If a grammar forces the output to be calls,
// there is no content: text that is cut before it is recognized as a call is dropped.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  virtual MessageDelta feed(std::string_view text) = 0;
  // Takes a marker of OutputParserConfig::token_markers that arrived as one token.
  virtual MessageDelta feed_marker(std::string_view marker) { return feed(marker); }
  // Ends the text and returns what was held back.
  virtual MessageDelta finish() = 0;
};

// The form of the output if a grammar forces the model to call a tool.
enum class ForcedCall {
  kNo,
  kNamed,   // only the arguments of tool_names[0]
  kAny,     // a JSON array of {"name": …, "parameters": …}
  kDialect  // calls in the model's own dialect
};

struct OutputParserConfig {
  std::string tool_call_parser = {};         // a dialect, such as "hermes"; empty: no tool calls
  std::string reasoning_parser = {};         // such as "think"; empty: no reasoning
  std::vector<std::string> tool_names = {};  // the call's tools; calls of other names are content
  // The JSON schemas of the tools' arguments, in the order of tool_names. They give the types of
  // arguments that a dialect writes as plain text.
  std::vector<std::string> tool_schemas = {};
  // The checkpoint's own template, which takes precedence over the name.
  std::shared_ptr<const ResponseTemplate> call_template = {};
  std::shared_ptr<const ResponseTemplate> reasoning_template = {};
  // Markers that are single tokens of the tokenizer. They count only if they come by feed_marker().
  std::vector<std::string> token_markers = {};
  ForcedCall forced = ForcedCall::kNo;  // takes precedence over tool_call_parser
  bool starts_in_reasoning = false;     // the prompt already opens the block
  bool keeps_first_call_only = false;   // parallel_tool_calls is false: later calls are dropped
  // Returns 24 random letters and digits, from which ids are made ("call_…"; Mistral's templates
  // require the first nine alone). Null: random_id(). Tests pass a fixed sequence.
  std::string (*make_id)() = nullptr;
};

// Returns 24 letters and digits that cannot be guessed.
std::string random_id();

// The names that the flags accept.
const std::vector<std::string>& tool_call_parser_names();
const std::vector<std::string>& reasoning_parser_names();
// Returns the parser that fits a chat template, by the markers in its source; "" if none fits.
std::string detect_tool_call_parser(std::string_view chat_template);
std::string detect_reasoning_parser(std::string_view chat_template);
// Returns whether the rendered prompt ends with the start of a reasoning block, such as "<think>".
bool prompt_opens_reasoning(std::string_view prompt, const ResponseTemplate& dialect);
// Returns whether it ends with the end of such a block, so that the output has no reasoning.
bool prompt_closes_reasoning(std::string_view prompt, const ResponseTemplate& dialect);
// Returns the marker that opens a tool call, such as "<tool_call>"; "" if calls open without a
// marker, so that a restricted text cannot be told from a call, or if there is no dialect (null).
std::string_view call_opening(const ResponseTemplate* dialect);
// Returns the marker that ends a reasoning block, such as "</think>"; "" if there is none.
std::string_view reasoning_end(const ResponseTemplate& dialect);

Result<std::unique_ptr<OutputParser>> make_output_parser(const OutputParserConfig& config);

// Parses a whole text at once.
ParsedMessage parse_output(OutputParser& parser, std::string_view text);
// Returns the arguments of a call if they are a whole JSON object; otherwise a limit has cut them,
// and the result is "{}".
std::string_view whole_arguments(std::string_view arguments);
// Appends a delta to a message.
void append(ParsedMessage& message, const MessageDelta& delta);

}  // namespace quire::server
