// The real server gives the corpus of every dialect as answers, streamed and whole. The model
// copies a text that is in the prompt.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_writer.h"
#include "server/dialect_answers.h"
#include "server/e2e/dialect_checkpoint.h"
#include "server/e2e/served.h"
#include "server/tools/dialect_corpus.h"
#include "server/tools/dialect_markers.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using server::Api;
using server::DialectCase;
using server::DialectCorpus;

constexpr std::string_view kPadding = " x";  // one token

std::string checkpoint() {
  static const ScratchDirectory scratch;
  static const bool is_written = [] {
    write_dialect_checkpoint(scratch.path());
    return true;
  }();
  EXPECT_TRUE(is_written);
  return scratch.path();
}

std::string tokenize_body(std::string_view text) {
  JsonWriter json;
  json.begin_object();
  json.field("prompt", text);
  json.field("add_special_tokens", false);
  json.end_object();
  return json.take();
}

int count_tokens(const Served& server, std::string_view text) {
  const HttpAnswer answer = server.post({"/tokenize", tokenize_body(text)});
  const auto document = JsonDocument::parse(answer.body, "answer");
  int64_t count = 0;
  EXPECT_TRUE(document.ok() && !document->root()["count"].get(count)) << answer.body;
  return static_cast<int>(count);
}

// A request whose prompt is the text, its end and padding, so that the model repeats the text.
JsonCall call_of(const Served& server, const DialectCorpus& corpus, std::string_view text,
                 bool is_stream) {
  std::string content(text);
  content += kDialectEosText;
  const int num_left = kDialectPeriod - 1 - count_tokens(server, text);
  EXPECT_GT(num_left, 0);
  for (int i = 0; i < num_left; ++i) content += kPadding;
  std::string tools;
  for (size_t i = 0; i < corpus.config.tool_names.size(); ++i) {
    tools +=
        fmt::format(R"({}{{"type":"function","function":{{"name":"{}","parameters":{}}}}})",
                    i == 0 ? "" : ",", corpus.config.tool_names[i], corpus.config.tool_schemas[i]);
  }
  JsonWriter json;
  json.begin_object();
  json.key("messages");
  json.begin_array();
  json.begin_object();
  json.field("role", "user");
  json.field("content", content);
  json.end_object();
  json.end_array();
  json.key("tools");
  json.raw("[" + tools + "]");
  json.field("temperature", 0);
  json.field("max_tokens", kDialectPeriod);
  json.field("stream", is_stream);
  json.end_object();
  return {"/v1/chat/completions", json.take()};
}

void check_dialect(const DialectCorpus& corpus) {
  const std::string& reasoning = corpus.config.reasoning_parser;
  Served server({"--model", checkpoint(), "--allow-special-tokens-in-messages",
                 "--tool-call-parser", corpus.config.tool_call_parser, "--reasoning-parser",
                 reasoning.empty() ? "none" : reasoning});
  ASSERT_TRUE(server.is_up());
  for (const DialectCase& c : corpus.cases) {
    SCOPED_TRACE(corpus.config.tool_call_parser + ": " + c.about + "\n" + c.text);
    server::ParsedMessage expected = c.message;
    for (std::string* const text : {&expected.reasoning, &expected.content}) {
      *text = server::without_markers(server::dialect_markers(), *text);
    }
    for (server::ToolCall& call : expected.tool_calls) {
      call.arguments = server::without_markers(server::dialect_markers(), call.arguments);
    }
    const std::vector<HttpAnswer> answers = server.post_all(
        {call_of(server, corpus, c.text, false), call_of(server, corpus, c.text, true)});
    const server::Answer whole = server::read_whole(Api::kChat, answers[0].body);
    EXPECT_EQ(whole.blocks, server::blocks_of(expected)) << answers[0].body;
    EXPECT_EQ(whole.finish, expected.tool_calls.empty() ? "stop" : "tool_calls");
    EXPECT_EQ(show(server::read_stream(Api::kChat, answers[1].body)), show(whole));
  }
}

class CopiedDialects : public ::testing::TestWithParam<const char*> {};

TEST_P(CopiedDialects, AreTheSameStreamedAndWhole) {
  QUIRE_REQUIRE_SHARED(dialect_tokenizer());
  const auto& corpora = server::dialect_corpora();
  const auto corpus = std::ranges::find_if(
      corpora, [](const DialectCorpus& one) { return one.config.tool_call_parser == GetParam(); });
  ASSERT_NE(corpus, corpora.end());
  check_dialect(*corpus);
}

INSTANTIATE_TEST_SUITE_P(Some, CopiedDialects,
                         ::testing::Values("hermes", "qwen3_coder", "deepseek_v31", "gemma4",
                                           "openai", "mistral"));

TEST(AllCopiedDialects, AreTheSameStreamedAndWhole) {
  QUIRE_REQUIRE_SHARED(dialect_tokenizer());
  for (const DialectCorpus& corpus : server::dialect_corpora()) check_dialect(corpus);
}

}  // namespace
}  // namespace quire::testing
