// Parses outputs of a model in every dialect. The message does not depend on how the text is cut,
// text that is not a call is kept, and no text of a forced call becomes content.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/tools/dialects.h"
#include "server/tools/json_scanner.h"
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
// 5: one call; 6: some markers are tokens; 7: calls are held until they are whole.
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
  if ((flags & 64) != 0) {
    config.token_markers = {{1, "<think>"}, {2, "</think>", true}, {3, "<tool_call>", true}};
  }
  config.holds_calls = (flags & 128) != 0;
  config.make_id = fixed_id;
  return config;
}

bool is_whole_json(std::string_view text) {
  JsonScanner json;
  return std::ranges::all_of(text, [&](char c) { return !json.done() && json.push(c); }) &&
         json.done();
}

// Parses pieces whose sizes follow from the seed. 0: the whole text at once. A byte that is the id
// of a marker stands for its token.
ParsedMessage parse(const OutputParserConfig& config, std::string_view text, uint32_t seed) {
  const auto parser = *make_output_parser(config);
  const auto marker_at = [&](size_t place) {
    return std::ranges::find(config.token_markers, static_cast<unsigned char>(text[place]),
                             &TokenMarker::token_id);
  };
  ParsedMessage message;
  uint32_t state = seed;
  for (size_t i = 0; i < text.size();) {
    if (const auto marker = marker_at(i); marker != config.token_markers.end()) {
      append(message, parser->feed_token(marker->token_id, marker->is_hidden ? "" : marker->text));
      ++i;
      continue;
    }
    state = state * 1664525U + 1013904223U;
    const size_t longest = seed == 0 ? text.size() : 1 + (state >> 24) % 12;
    size_t end = i;
    while (end < std::min(text.size(), i + longest) &&
           marker_at(end) == config.token_markers.end()) {
      ++end;
    }
    append(message, parser->feed(text.substr(i, end - i)));
    i = end;
  }
  append(message, parser->finish(TextEnd::kModel));
  return message;
}

}  // namespace

// The first bytes: the configuration, the dialect, and the pieces into which the rest is cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeader = 3;
  if (size < kHeader) return 0;
  const OutputParserConfig config = config_of(data[0], data[1]);
  const std::string_view text(reinterpret_cast<const char*>(data) + kHeader, size - kHeader);
  const ParsedMessage whole = parse(config, text, 0);
  const ParsedMessage pieces = parse(config, text, 1U + data[2]);
  QUIRE_CHECK(shown(pieces) == shown(whole), "the message depends on where its text is cut");
  if (config.forced != ForcedCall::kNo) {
    QUIRE_CHECK(whole.content.empty() || whole.has_cut_call, "text of a forced call is content");
    return 0;
  }
  for (const ToolCall& call : whole.tool_calls) {
    QUIRE_CHECK(call.arguments.empty() || call.arguments.starts_with('{'),
                "the arguments are no object");
    QUIRE_CHECK(!config.holds_calls || is_whole_json(call.arguments),
                "the arguments of a held call are not whole");
  }
  const size_t kept = whole.reasoning.size() + whole.content.size();
  const bool is_all_content = !config.token_markers.empty() || !whole.tool_calls.empty() ||
                              !config.reasoning_parser.empty() ||
                              !keeps_text(config.tool_call_parser) || kept == text.size();
  QUIRE_CHECK(is_all_content, "text without a call is not all content");
  return 0;
}
