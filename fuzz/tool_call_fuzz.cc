// Parses outputs of a model in every dialect. Wherever the text is cut, and whether markers are
// tokens or text, the deltas add up to the whole message. Text that is not a call is kept.
//
// The first bytes are the configuration, the dialect, and the pieces into which the text is cut.
// The rest is the text. Bytes below 0xC0 are themselves; each byte from 0xC0 on is a fragment of
// the dialect, so that short inputs reach every state of a parser.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "server/tools/dialect_markers.h"
#include "server/tools/dialects.h"
#include "server/tools/json_scanner.h"
#include "server/tools/output_parser.h"

namespace {

using namespace quire::server;

constexpr uint8_t kFirstFragment = 0xC0;

std::string fixed_id() {
  return "abcdefghijklmnopqrstuvwx";
}

std::string shown(const ParsedMessage& message) {
  std::string text = message.reasoning + '\x01' + message.content;
  for (const ToolCall& call : message.tool_calls) {
    text += '\x01' + call.id + '\x02' + call.name + '\x02' + call.arguments;
  }
  return text + (message.has_cut_call ? "\x01cut" : "");
}

// Returns whether the dialect's content is all text that is not a call.
bool keeps_text(std::string_view tool_call_parser) {
  const ResponseTemplate* const dialect = find_dialect(tool_call_parser);
  if (dialect == nullptr) return true;
  const bool has_regions = std::ranges::any_of(dialect->fields, [](const TemplateField& field) {
    return field.target != TemplateField::Target::kCalls &&
           field.target != TemplateField::Target::kReasoning && !field.open.empty();
  });
  return dialect->drop.empty() && !has_regions;
}

// The literals of the configuration's dialects.
std::vector<std::string_view> literals_of(const OutputParserConfig& config) {
  ResponseTemplate::Literals literals;
  for (const ResponseTemplate* const dialect :
       {find_dialect(config.tool_call_parser), find_reasoning_dialect(config.reasoning_parser)}) {
    if (dialect != nullptr) dialect->add_literals(literals);
  }
  std::erase(literals.texts, "");
  return literals.texts;
}

// The bits of `flags` are 0: no calls; 1: reasoning; 2 and 3: forced calls; 4: the prompt opens the
// reasoning; 5: at most one call; 6: markers are tokens; 7: calls are held until they are whole.
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
  config.forced = static_cast<ForcedCall>(((flags >> 2) & 3) % 3);
  config.starts_in_reasoning = (flags & 16) != 0;
  config.keeps_first_call_only = (flags & 32) != 0;
  if ((flags & 64) != 0) {
    std::set<std::string> markers;
    for (const std::string_view literal : literals_of(config)) add_markers(literal, markers);
    for (const std::string& marker : markers) {
      const auto id = static_cast<int32_t>(config.token_markers.size());
      config.token_markers.push_back({.token_id = id, .text = marker, .is_hidden = id % 2 == 0});
    }
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

// A part of an output: text, or a marker's token.
struct OutputPart {
  std::string text;
  const TokenMarker* token = nullptr;
};
using OutputParts = std::vector<OutputPart>;

void add_text(char c, OutputParts& out) {
  if (out.empty() || out.back().token != nullptr) out.emplace_back();
  out.back().text += c;
}

// Adds a text as a model writes it, with markers as tokens if the configuration has them.
void add_fragment(std::string_view text, const OutputParserConfig& config, OutputParts& out) {
  while (!text.empty()) {
    const auto marker = std::ranges::find_if(
        config.token_markers, [&](const TokenMarker& one) { return text.starts_with(one.text); });
    if (marker == config.token_markers.end()) {
      add_text(text.front(), out);
      text.remove_prefix(1);
    } else {
      out.push_back({.text = marker->is_hidden ? "" : marker->text, .token = &*marker});
      text.remove_prefix(marker->text.size());
    }
  }
}

OutputParts parts_of(const uint8_t* data, size_t size, const OutputParserConfig& config) {
  std::vector<std::string_view> fragments = literals_of(config);
  for (const char* const more : {R"({"name": "f", "arguments": {)",
                                 R"({"name": "add", "parameters": {"a": 1}})",
                                 "f",
                                 "add",
                                 "get_weather",
                                 "typed",
                                 R"("a": 1)",
                                 R"("x": "y)",
                                 "a=1",
                                 "x",
                                 "a",
                                 "{",
                                 "}",
                                 "}}",
                                 "[",
                                 "]",
                                 ", ",
                                 "\"",
                                 "\\",
                                 "\\ud83e",
                                 "\n",
                                 "\xF0\x9F\xA4\x97"}) {
    fragments.emplace_back(more);
  }
  OutputParts parts;
  for (size_t i = 0; i < size; ++i) {
    if (data[i] < kFirstFragment) {
      add_text(static_cast<char>(data[i]), parts);
    } else {
      // The index depends on the place of the byte, so that each fragment of a long list can occur.
      const size_t idx = (data[i] - kFirstFragment + (i % 4) * 64) % fragments.size();
      add_fragment(fragments[idx], config, parts);
    }
  }
  return parts;
}

// next_size(): the size of the next piece of a text.
template <typename NextSize>
ParsedMessage parse(const OutputParserConfig& config, const OutputParts& parts, TextEnd end,
                    NextSize next_size) {
  const auto parser = *make_output_parser(config);
  ParsedMessage message;
  for (const OutputPart& part : parts) {
    if (part.token != nullptr) {
      append(message, parser->feed_token(part.token->token_id, part.text));
      continue;
    }
    for (std::string_view rest = part.text; !rest.empty();) {
      const size_t size = std::min(rest.size(), next_size());
      append(message, parser->feed(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
  }
  append(message, parser->finish(end));
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeader = 3;
  constexpr size_t kShort = 24;  // bytes of the longest text that is cut at each place
  if (size < kHeader) return 0;
  const OutputParserConfig config = config_of(data[0], data[1]);
  const TextEnd end = (data[2] & 128) != 0 ? TextEnd::kCut : TextEnd::kModel;
  const OutputParts parts = parts_of(data + kHeader, size - kHeader, config);
  size_t num_bytes = 0;
  for (const OutputPart& part : parts) num_bytes += part.text.size();
  const ParsedMessage whole = parse(config, parts, end, [] { return SIZE_MAX; });
  const auto expect_whole = [&](const ParsedMessage& message) {
    QUIRE_CHECK(shown(message) == shown(whole), "the message depends on where its text is cut");
  };
  uint32_t state = 1U + data[2];
  expect_whole(parse(config, parts, end, [&] {
    state = state * 1664525U + 1013904223U;
    return size_t{1} + (state >> 24) % 12;
  }));
  expect_whole(parse(config, parts, end, [] { return size_t{1}; }));
  // Parses the output with one cut at each place of the first text.
  const size_t num_places = num_bytes <= kShort && !parts.empty() ? parts.front().text.size() : 0;
  for (size_t place = 1; place < num_places; ++place) {
    bool is_cut = false;
    expect_whole(
        parse(config, parts, end, [&] { return std::exchange(is_cut, true) ? SIZE_MAX : place; }));
  }
  if (config.forced != ForcedCall::kNo) return 0;
  for (const ToolCall& call : whole.tool_calls) {
    QUIRE_CHECK(call.arguments.empty() || call.arguments.starts_with('{'),
                "the arguments are no object");
    QUIRE_CHECK(!config.holds_calls || is_whole_json(call.arguments),
                "the arguments of a held call are not whole");
  }
  const size_t kept = whole.reasoning.size() + whole.content.size();
  const bool is_all_content = !config.token_markers.empty() || !whole.tool_calls.empty() ||
                              !config.reasoning_parser.empty() ||
                              !keeps_text(config.tool_call_parser) || kept == num_bytes;
  QUIRE_CHECK(is_all_content, "text without a call is not all content");
  return 0;
}
