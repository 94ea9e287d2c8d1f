// Compares openapi.json with the code: its bounds are those of RequestLimits, its fields are
// those that are read, and its paths are those of the route table.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/ascii.h"
#include "base/json.h"
#include "sample/sampling_fields.h"
#include "server/openai/requests.h"
#include "server/routes/routes.h"

namespace quire::server {
namespace {

class OpenApi : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* source = std::getenv("QUIRE_SOURCE_DIR");
    if (source == nullptr) GTEST_SKIP() << "QUIRE_SOURCE_DIR is not set; ctest sets it";
    auto loaded = JsonDocument::load(std::string(source) + "/src/server/openai/openapi.json");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    document_.emplace(std::move(*loaded));
  }

  int64_t number(const std::string& pointer) const {
    int64_t value = -1;
    EXPECT_FALSE(document_->root().at_pointer("/components/schemas/" + pointer).get(value))
        << pointer;
    return value;
  }
  bool has(const std::string& pointer) const {
    return document_->root().at_pointer(pointer).error() == simdjson::SUCCESS;
  }

  std::optional<JsonDocument> document_;
};

TEST_F(OpenApi, HasTheLimitsOfCalls) {
  const RequestLimits limits;
  for (const std::string request : {"CompletionRequest", "ChatRequest"}) {
    const std::string fields = request + "/properties/";
    EXPECT_EQ(number(fields + "n/maximum"), limits.max_sequences);
    EXPECT_EQ(number(fields + "stop/anyOf/2/maxItems"), limits.max_stops);
    EXPECT_EQ(number(fields + "logit_bias/maxProperties"), limits.max_biases);
    EXPECT_EQ(number(fields + "prompt_logprobs/maximum"), limits.max_logprobs);
    EXPECT_EQ(number(fields + "guided_choice/maxItems"),
              static_cast<int64_t>(limits.grammar.max_choices));
    EXPECT_EQ(number(fields + "guided_regex/maxLength"),
              static_cast<int64_t>(limits.grammar.max_regex_bytes));
    EXPECT_EQ(number(fields + "regex/maxLength"),
              static_cast<int64_t>(limits.grammar.max_regex_bytes));
    for (const char* grammar : {"guided_grammar", "grammar", "ebnf"}) {
      EXPECT_EQ(number(fields + grammar + "/maxLength"),
                static_cast<int64_t>(limits.grammar.max_text_bytes))
          << grammar;
    }
    for (const SamplingField& field : sampling_fields()) {
      EXPECT_TRUE(has("/components/schemas/" + fields + std::string(field.name))) << field.name;
    }
  }
  EXPECT_EQ(number("CompletionRequest/properties/logprobs/maximum"), limits.max_logprobs);
  EXPECT_EQ(number("CompletionRequest/properties/prompt/anyOf/2/maxItems"), limits.max_prompts);
  EXPECT_EQ(number("EmbeddingsRequest/properties/input/anyOf/2/maxItems"),
            limits.max_embedding_inputs);
  EXPECT_EQ(number("RerankRequest/properties/documents/anyOf/1/maxItems"), limits.max_prompts);
  EXPECT_EQ(number("ChatRequest/properties/top_logprobs/maximum"), limits.max_logprobs);
  EXPECT_EQ(number("ChatRequest/properties/messages/maxItems"), limits.max_messages);
  EXPECT_EQ(number("ChatRequest/properties/tools/maxItems"), limits.max_tools);
  EXPECT_EQ(number("OllamaChatRequest/properties/messages/maxItems"), limits.max_messages);
  EXPECT_EQ(number("OllamaChatRequest/properties/tools/maxItems"), limits.max_tools);
  EXPECT_EQ(number("OllamaChatRequest/properties/top_logprobs/maximum"), limits.max_logprobs);
  EXPECT_EQ(number("OllamaOptions/properties/stop/anyOf/2/maxItems"), limits.max_stops);
}

// The JSON pointer of a route: `/` is `~1`, and the method is in lower case.
std::string pointer_of(const Route& route) {
  std::string pointer = "/paths/";
  for (const char c : route.path) pointer += c == '/' ? "~1" : std::string(1, c);
  pointer += '/';
  for (const char c : route.method) pointer += to_lower(c);
  return pointer;
}

TEST_F(OpenApi, HasAllRoutes) {
  for (const Route& route : routes()) {
    EXPECT_TRUE(has(pointer_of(route) + "/responses/200")) << route.path;
    EXPECT_TRUE(has(pointer_of(route) + "/responses/500")) << route.path;
  }
}

}  // namespace
}  // namespace quire::server
