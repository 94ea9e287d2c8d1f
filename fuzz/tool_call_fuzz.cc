// Parses outputs of a model in every dialect. The message does not depend on how the text is cut,
// text that is not a call is kept, and no text of a forced call becomes content.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/tools/dialects.h"
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

// Returns whether the dialect's content is all text that is no call.
bool keeps_text(std::string_view tool_call_parser) {
  const ResponseTemplate* const dialect = find_dialect(tool_call_parser);
  if (dialect == nullptr) return true;
  const bool has_regions = std::ranges::any_of(dialect->fields, [](const TemplateField& field) {
    return field.target != TemplateField::Target::kCalls &&
           field.target != TemplateField::Target::kReasoning && !field.open.empty();
  });
  return dialect->drop.empty() && !has_regions;
}

// Bit 0 of `flags`: no calls; 1: reasoning; 2 and 3: forced; 4: the prompt opens the reasoning;
// 5: one call; 6: some markers are tokens.
OutputParserConfig config_of(uint8_t flags, uint8_t dialect) {
  const auto& names = tool_call_parser_names();
  const auto& reasoning_names = reasoning_parser_names();
  OutputParserConfig config;
  if ((flags & 1) == 0) config.tool_call_parser = names[dialect % names.size()];
  if ((flags & 2) != 0) {
    const auto same = std::ranges::find(reasoning_names, config.tool_call_parser);
    config.reasoning_parser =
        same != reasoning_names.end() ? *same : reasoning_names[dialect % reasoning_names.size()];
  }
  config.tool_names = {"f", "add", "get_weather", "typed"};
  config.tool_schemas = {"", "{\"properties\":{\"a\":{\"type\":\"number\"}}}", "{}",
                         "{\"properties\":{\"x\":{\"type\":[\"array\",\"null\",\"object\"]}}}"};
  config.forced = static_cast<ForcedCall>((flags >> 2) & 3);
  config.starts_in_reasoning = (flags & 16) != 0;
  config.keeps_first_call_only = (flags & 32) != 0;
  if ((flags & 64) != 0) config.token_markers = {"<think>", "</think>", "<tool_call>"};
  config.make_id = fixed_id;
  return config;
}

}  // namespace

// The first bytes: the configuration, the dialect, and the pieces into which the rest is cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeader = 3;
  if (size < kHeader) return 0;
  const OutputParserConfig config = config_of(data[0], data[1]);
  const std::string_view text(reinterpret_cast<const char*>(data) + kHeader, size - kHeader);
  const ParsedMessage whole = parse_output(**make_output_parser(config), text);

  auto parser = *make_output_parser(config);
  ParsedMessage pieces;
  uint32_t state = data[2];
  for (size_t i = 0; i < text.size();) {
    state = state * 1664525U + 1013904223U;
    const size_t length = 1 + (state >> 24) % 12;
    append(pieces, parser->feed(text.substr(i, length)));
    i += length;
  }
  append(pieces, parser->finish());
  QUIRE_CHECK(shown(pieces) == shown(whole), "the message depends on where its text is cut");
  if (config.forced != ForcedCall::kNo) {
    QUIRE_CHECK(whole.content.empty(), "text of a forced call is content");
    return 0;
  }
  for (const ToolCall& call : whole.tool_calls) {
    QUIRE_CHECK(call.arguments.empty() || call.arguments.starts_with('{'),
                "the arguments are no object");
  }
  const size_t kept = whole.reasoning.size() + whole.content.size();
  const bool is_all_content = !whole.tool_calls.empty() || !config.reasoning_parser.empty() ||
                              !keeps_text(config.tool_call_parser) || kept == text.size();
  QUIRE_CHECK(is_all_content, "text without a call is not all content");
  return 0;
}
