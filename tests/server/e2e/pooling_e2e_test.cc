// Embeddings and scores of the real binary, compared with those of transformers for the tiny random
// models that tools/golden/pooling.py made.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "base/json_writer.h"
#include "server/e2e/served.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

JsonDocument read_cases(const std::string& model) {
  return JsonDocument::load(source_path("tests/golden/pooling/" + model + "/cases.json")).value();
}

Words flags_of(const std::string& model) {
  return Words{"--model", source_path("tests/golden/pooling/" + model).string()} +
         "--device cpu --kv-cache-dtype f32";
}

JsonDocument parse(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  return JsonDocument::parse(answer.body, "the response").value();
}

double number_at(const JsonDocument& document, const std::string& pointer) {
  double number = NAN;
  EXPECT_FALSE(document.root().at_pointer(pointer).get(number)) << pointer;
  return number;
}

TEST(Pooling, EmbeddingsAreThoseOfTransformers) {
  Served server(flags_of("embedding"));
  ASSERT_TRUE(server.is_up());
  const JsonDocument cases = read_cases("embedding");
  JsonWriter body;
  body.begin_object();
  body.key("input");
  body.begin_array();
  size_t num_tokens = 0;
  for (const simdjson::dom::element entry : cases.root().get_array()) {
    body.value(entry["text"].get_string().value());
    num_tokens += entry["ids"].get_array().value().size();
  }
  body.end_array();
  body.end_object();
  const JsonDocument response = parse(server.post({"/v1/embeddings", body.take()}));
  EXPECT_EQ(number_at(response, "/usage/prompt_tokens"), num_tokens);
  size_t i = 0;
  for (const simdjson::dom::element entry : cases.root().get_array()) {
    for (size_t k = 0; k < 32; ++k) {
      const double expected = entry["embedding"].at(k).get_double().value();
      EXPECT_NEAR(number_at(response, fmt::format("/data/{}/embedding/{}", i, k)), expected, 1e-5);
    }
    ++i;
  }
  EXPECT_EQ(i, 5U);
  const HttpAnswer chat =
      server.post({"/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"});
  EXPECT_EQ(chat.status, 404);
  EXPECT_THAT(chat.body, HasSubstr("use POST /v1/embeddings"));
  EXPECT_THAT(server.get("/metrics").body, HasSubstr("vllm:generation_tokens_total"));
}

// OpenAI's clients send up to 2,048 texts at once.
TEST(Pooling, TakesAsManyTextsAsClientsSend) {
  Served server(flags_of("embedding"));
  ASSERT_TRUE(server.is_up());
  std::string texts = "\"a\"";
  for (int i = 1; i < 2048; ++i) texts += ",\"a\"";
  const JsonDocument response =
      parse(server.post({"/v1/embeddings", "{\"input\":[" + texts + "]}"}));
  EXPECT_EQ(number_at(response, "/data/2047/index"), 2047);
  EXPECT_EQ(server.post({"/v1/embeddings", "{\"input\":[" + texts + ",\"a\"]}"}).status, 400);
}

// One document holds the control tokens of a forged answer.
TEST(Pooling, ScoresAreThoseOfTransformers) {
  Served server(flags_of("reranker"));
  ASSERT_TRUE(server.is_up());
  const JsonDocument cases = read_cases("reranker");
  JsonWriter body;
  body.begin_object();
  body.field("query", cases.root().at(0)["query"].get_string().value());
  body.key("documents");
  body.begin_array();
  size_t num_tokens = 0;
  std::vector<double> expected;
  for (const simdjson::dom::element entry : cases.root().get_array()) {
    body.value(entry["document"].get_string().value());
    num_tokens += static_cast<size_t>(entry["num_tokens"].get_int64().value());
    expected.push_back(entry["score"].get_double().value());
  }
  body.end_array();
  body.end_object();
  for (const char* path : {"/v1/rerank", "/rerank", "/v2/rerank"}) {
    const JsonDocument ranking = parse(server.post({path, body.text()}));
    EXPECT_EQ(number_at(ranking, "/usage/prompt_tokens"), num_tokens);
    double last = 1;
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string result = fmt::format("/results/{}", i);
      const auto document = static_cast<size_t>(number_at(ranking, result + "/index"));
      const double score = number_at(ranking, result + "/relevance_score");
      EXPECT_NEAR(score, expected[document], 1e-5);
      EXPECT_LE(score, last);
      last = score;
    }
  }
  const JsonDocument scores = parse(
      server.post({"/score", fmt::format(R"({{"text_1":"{}","text_2":"{}"}})",
                                         cases.root().at(0)["query"].get_string().value(),
                                         cases.root().at(0)["document"].get_string().value())}));
  EXPECT_NEAR(number_at(scores, "/data/0/score"), expected[0], 1e-5);
  EXPECT_EQ(server.post({"/v1/embeddings", R"({"input":"a"})"}).status, 404);
}

}  // namespace
}  // namespace quire::testing
