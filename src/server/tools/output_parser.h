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

// Whether a call was cut: its arguments end before they are whole.
enum class CutCall : uint8_t {
  kNone,
  kBegun,   // the last call of the deltas so far
  kAsText,  // a held call, which is not in the deltas: its text becomes content
};

// New parts of a message, in this order.
struct MessageDelta {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCallDelta> tool_calls = {};
  CutCall cut = CutCall::kNone;
};
using MessageDeltas = std::vector<MessageDelta>;  // no delta is empty

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

// The cause of a text's end: the model, or a token limit or stop string (kCut). Missing closing
// brackets are added only if the model ended the text.
enum class TextEnd : uint8_t { kModel, kCut };

// Parses the text of one sequence in pieces of any size; the joined deltas do not depend on the
// pieces. The parser holds back text that may begin a marker or a call until it is decided (at most
// 64 KiB; the time is linear). Text that is not a call becomes content, without markers and without
// the white space next to calls. A call is recognized at the start of its arguments. In arguments,
// raw control characters and invalid escapes are repaired, and missing closing brackets are added
// at the end of the call, or of a text that the model ended. If arguments remain invalid or cut,
// the call ends there and the rest is content; a held call becomes content as a whole. If the text
// ends within reasoning, the first whole call in it counts, and the reasoning ends before it.
class OutputParser {
 public:
  virtual ~OutputParser() = default;
  virtual MessageDeltas feed(std::string_view text) = 0;
  // Takes an added token of the tokenizer. `text` is its part of the visible text, which is empty
  // for a hidden token.
  virtual MessageDeltas feed_token(int32_t token_id, std::string_view text) = 0;
  // Ends the text and returns what was held back.
  virtual MessageDeltas finish(TextEnd end) = 0;
};

// How a grammar that forces a tool call writes it if the model's dialect is not known.
enum class ForcedCall {
  kNo,
  kNamed,  // only the arguments of tool_names[0]
  kAny     // a JSON array of {"name": …, "parameters": …}
};

struct OutputParserConfig {
  std::string tool_call_parser = {};         // a dialect, such as "hermes"; empty: no tool calls
  std::string reasoning_parser = {};         // such as "think"; empty: no reasoning
  std::vector<std::string> tool_names = {};  // the request's tools; other calls are content
  // The JSON schemas of the tools' arguments, in the order of tool_names. They give the types of
  // arguments that a dialect writes as plain text.
  std::vector<std::string> tool_schemas = {};
  // The checkpoint's own templates, which take precedence over the dialects that are named above.
  std::shared_ptr<const ResponseTemplate> call_template = {};
  std::shared_ptr<const ResponseTemplate> reasoning_template = {};
  // Markers that are tokens. They count only in feed_token(); a text that spells one is plain text.
  std::vector<TokenMarker> token_markers = {};
  ForcedCall forced = ForcedCall::kNo;  // takes precedence over tool_call_parser
  bool starts_in_reasoning = false;     // the prompt already opens the block
  bool keeps_first_call_only = false;   // parallel_tool_calls is false: later calls are dropped
  // Calls are held until they are whole: all calls, or those of held_tools. A held call that is cut
  // becomes content, as the model wrote it.
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
// Returns the name of the dialect whose markers occur in the chat template's source; "": none.
std::string detect_tool_call_parser(std::string_view chat_template);
std::string detect_reasoning_parser(std::string_view chat_template);
// Returns the added tokens that are markers of one of the dialects, which may be null.
std::vector<TokenMarker> markers_among(std::vector<TokenMarker> added_tokens,
                                       std::initializer_list<const ResponseTemplate*> dialects);
// Returns whether the rendered prompt ends with the start of a reasoning block, such as "<think>".
bool prompt_opens_reasoning(std::string_view prompt, const ResponseTemplate& dialect);
// Returns whether the rendered prompt ends with the marker that closes a reasoning block, so that
// the output has none.
bool prompt_closes_reasoning(std::string_view prompt, const ResponseTemplate& dialect);
// Returns the marker that opens a tool call, such as "<tool_call>". "": no dialect (null), or calls
// open without a marker; a restriction then cannot distinguish a call from the text.
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
