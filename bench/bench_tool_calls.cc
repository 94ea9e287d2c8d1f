// Measures the interpreter of tool calls and reasoning: the CPU time per token of 256 streams, for
// each dialect. The streams take turns by token, as in a server, and write the texts of the tests'
// corpus. A marker is one token; other tokens have four bytes.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/machine.h"
#include "server/tools/dialect_corpus.h"
#include "server/tools/dialect_markers.h"

namespace {

using namespace quire;
using namespace quire::server;

constexpr size_t kNumStreams = 256;
constexpr size_t kNumTokens = 2000;  // of a stream
constexpr size_t kTokenBytes = 4;

struct Token {
  std::string text;
  int32_t id = -1;  // of a marker
};

std::vector<TokenMarker> markers_of(const OutputParserConfig& config) {
  std::vector<TokenMarker> all;
  for (const std::string& text : dialect_markers()) {
    all.push_back({.token_id = static_cast<int32_t>(all.size()), .text = text, .is_hidden = true});
  }
  return markers_among(std::move(all), {find_dialect(config.tool_call_parser),
                                        find_reasoning_dialect(config.reasoning_parser)});
}

std::vector<Token> tokens_of(std::string_view text, const std::vector<TokenMarker>& markers) {
  std::vector<Token> tokens;
  bool is_open = false;  // the last token takes more bytes
  while (!text.empty()) {
    const auto marker = std::ranges::find_if(
        markers, [&](const TokenMarker& one) { return text.starts_with(one.text); });
    if (marker != markers.end()) {
      tokens.push_back({.text = "", .id = marker->token_id});
      text.remove_prefix(marker->text.size());
      is_open = false;
      continue;
    }
    if (!is_open) tokens.emplace_back();
    tokens.back().text += text.front();
    text.remove_prefix(1);
    is_open = tokens.back().text.size() < kTokenBytes;
  }
  return tokens;
}

// A stream writes one text after the other, each with a parser of its own.
struct Stream {
  std::unique_ptr<OutputParser> parser;
  size_t text = 0;
  size_t token = 0;
};

void measure(const DialectCorpus& corpus) {
  OutputParserConfig config = corpus.config;
  config.token_markers = markers_of(config);
  std::vector<std::vector<Token>> texts;
  for (const DialectCase& c : corpus.cases) {
    if (!c.text.empty()) texts.push_back(tokens_of(c.text, config.token_markers));
  }
  std::vector<Stream> streams(kNumStreams);
  for (size_t i = 0; i < kNumStreams; ++i) streams[i].text = i % texts.size();
  int64_t start_ns = 0;  // of making the parsers
  size_t num_parsers = 0;
  size_t num_deltas = 0;
  const int64_t begin = process_cpu_ns();
  for (size_t i = 0; i < kNumTokens; ++i) {
    for (Stream& stream : streams) {
      if (stream.parser == nullptr) {
        const int64_t before = process_cpu_ns();
        stream.parser = std::move(*make_output_parser(config));
        start_ns += process_cpu_ns() - before;
        ++num_parsers;
      }
      const std::vector<Token>& tokens = texts[stream.text];
      const Token& token = tokens[stream.token];
      const MessageDeltas deltas = token.id < 0 ? stream.parser->feed(token.text)
                                                : stream.parser->feed_token(token.id, token.text);
      num_deltas += deltas.size();
      if (++stream.token < tokens.size()) continue;
      num_deltas += stream.parser->finish(TextEnd::kModel).size();
      stream = {.parser = nullptr, .text = (stream.text + 1) % texts.size()};
    }
  }
  const auto spent_ns = static_cast<double>(process_cpu_ns() - begin - start_ns);
  fmt::print("{:<18} {:5.0f} ns per token, {:5.1f} us per parser, {:.2f} deltas per token\n",
             config.tool_call_parser, spent_ns / (kNumStreams * kNumTokens),
             static_cast<double>(start_ns) / 1000.0 / static_cast<double>(num_parsers),
             static_cast<double>(num_deltas) / (kNumStreams * kNumTokens));
}

}  // namespace

// Usage: bench_tool_calls [DIALECT…]
int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  for (const DialectCorpus& corpus : dialect_corpora()) {
    const bool is_wanted =
        wanted.empty() || std::ranges::find(wanted, corpus.config.tool_call_parser) != wanted.end();
    if (is_wanted) measure(corpus);
  }
  return 0;
}
