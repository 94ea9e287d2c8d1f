// Parses outputs of a model. The message does not depend on how the text is cut, text that is not a
// call is kept, and no text of a forced call becomes content.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/tools/output_parser.h"

namespace {

using namespace quire::server;

std::string fixed_id() {
  return "abcdefghijklmnopqrstuvwx";
}

std::string shown(const ParsedMessage& message) {
  std::string text = message.reasoning + '\x01' + message.content;
  for (const ToolCall& call : message.tool_calls) {
    text += '\x01' + call.id + '\x02' + call.name + '\x02' + call.arguments;
  }
  return text;
}

}  // namespace

// The first byte selects the parsers, the second the pieces into which the rest is cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const char* const parsers[] = {"hermes", "llama3_json", "mistral", ""};
  const OutputParserConfig config = {.tool_call_parser = parsers[data[0] & 3],
                                     .reasoning_parser = (data[0] & 4) != 0 ? "think" : "",
                                     .tool_names = {"f", "add"},
                                     .forced = static_cast<ForcedCall>((data[0] >> 3) % 3),
                                     .starts_in_reasoning = (data[0] & 64) != 0,
                                     .keeps_first_call_only = (data[0] & 128) != 0,
                                     .make_id = fixed_id};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const ParsedMessage whole = parse_output(**make_output_parser(config), text);

  auto parser = *make_output_parser(config);
  ParsedMessage pieces;
  uint32_t state = data[1];
  for (size_t i = 0; i < text.size();) {
    state = state * 1664525U + 1013904223U;
    const size_t length = 1 + (state >> 24) % 12;
    append(pieces, parser->feed(text.substr(i, length)));
    i += length;
  }
  append(pieces, parser->finish());
  QUIRE_CHECK(shown(pieces) == shown(whole), "the message depends on where its text is cut");
  const size_t kept = whole.reasoning.size() + whole.content.size();
  if (config.forced != ForcedCall::kNo) {
    QUIRE_CHECK(whole.content.empty(), "text of a forced call is content");
    return 0;
  }
  QUIRE_CHECK(!whole.tool_calls.empty() || (data[0] & 4) != 0 || kept == text.size(),
              "text without a call is not all content");
  return 0;
}
