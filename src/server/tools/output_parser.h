// Splits a model's output, as it streams, into reasoning, content and tool calls.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "server/tools/token_marker.h"

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

// A call whose arguments end before they are whole.
enum class CutCall : uint8_t {
  kNone,
  kBegun,   // the last call that the deltas have begun
  kAsText,  // a call that was held: its text is content
};

// New parts of a message, in this order.
struct MessageDelta {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCallDelta> tool_calls = {};
  CutCall cut = CutCall::kNone;
};
using MessageDeltas = std::vector<MessageDelta>;  // none is empty

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
  bool has_cut_call = false;
};

// Who ended a text. What a limit of tokens or a stop string has cut is not completed.
enum class TextEnd : uint8_t { kModel, kLimit };

// Parses the text of one sequence in pieces of any size. The joined deltas do not depend on where
// the text is cut. Text that could be the start of a marker or of a call is held back until it is
// decided (at most 64 KiB; the time is linear). Text that turns out to be no call becomes content,
// except markers and the white space next to calls. A call is recognized once its name and the
// start of its arguments are read. Slips in the arguments are repaired: raw control characters and
// invalid escapes in strings, and closing brackets that are missing before the end of the call or
// of a text that the model has ended. If the arguments are invalid or cut otherwise, they end there
// and the rest is content; but a call that is held until it is whole becomes content. A whole call
// within reasoning is a call if the reasoning does not end.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  virtual MessageDeltas feed(std::string_view text) = 0;
  // Takes an added token of the tokenizer. `text` is its part of the visible text, which is empty
  // for a hidden one.
  virtual MessageDeltas feed_token(int32_t token_id, std::string_view text) = 0;
  // Ends the text and returns what was held back.
  virtual MessageDeltas finish(TextEnd end) = 0;
};

// The form of the output if a grammar forces the model to call a tool and no dialect is known.
enum class ForcedCall {
  kNo,
  kNamed,  // only the arguments of tool_names[0]
  kAny     // a JSON array of {"name": …, "parameters": …}
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
  // They count only if they come by feed_token(), and never as text that spells them.
  std::vector<TokenMarker> token_markers = {};
  ForcedCall forced = ForcedCall::kNo;  // takes precedence over tool_call_parser
  bool starts_in_reasoning = false;     // the prompt already opens the block
  bool keeps_first_call_only = false;   // parallel_tool_calls is false: later calls are dropped
  // Calls are held until they are whole: all, or those of the tools with these names. A call whose
  // arguments are cut is then content, as the model wrote it.
  bool holds_calls = false;
  std::vector<std::string> held_tools = {};
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
// Returns those of a tokenizer's added tokens that are markers of the dialects. Null: no dialect.
std::vector<TokenMarker> markers_among(std::vector<TokenMarker> added_tokens,
                                       std::initializer_list<const ResponseTemplate*> dialects);
// Returns whether the rendered prompt ends with the start of a reasoning block, such as "<think>".
bool prompt_opens_reasoning(std::string_view prompt, const ResponseTemplate& dialect);
// Returns whether it ends with the end of such a block, so that the output has no reasoning.
bool prompt_closes_reasoning(std::string_view prompt, const ResponseTemplate& dialect);
// Returns the marker that opens a tool call, such as "<tool_call>"; "" if calls open without a
// marker, so that a restricted text cannot be told from a call, or if there is no dialect (null).
std::string_view call_opening(const ResponseTemplate* dialect);
// Returns the marker that ends a reasoning block, such as "</think>", or "" if the dialect has
// none.
std::string_view reasoning_end(const ResponseTemplate& dialect);

Result<std::unique_ptr<OutputParser>> make_output_parser(const OutputParserConfig& config);

// Parses a whole text at once.
ParsedMessage parse_output(OutputParser& parser, std::string_view text);
// Appends deltas to a message.
void append(ParsedMessage& message, const MessageDeltas& deltas);

}  // namespace quire::server
