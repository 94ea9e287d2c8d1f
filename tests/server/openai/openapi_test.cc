// Compares openapi.json with the code: its bounds are those of RequestLimits, and its fields are
// those that are read.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.h"
#include "sample/sampling_fields.h"
#include "server/openai/requests.h"

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
    EXPECT_EQ(number(fields + "guided_grammar/maxLength"),
              static_cast<int64_t>(limits.grammar.max_text_bytes));
    for (const SamplingField& field : sampling_fields()) {
      EXPECT_TRUE(has("/components/schemas/" + fields + std::string(field.name))) << field.name;
    }
  }
  EXPECT_EQ(number("CompletionRequest/properties/logprobs/maximum"), limits.max_logprobs);
  EXPECT_EQ(number("CompletionRequest/properties/prompt/anyOf/2/maxItems"), limits.max_prompts);
  EXPECT_EQ(number("ChatRequest/properties/top_logprobs/maximum"), limits.max_logprobs);
  EXPECT_EQ(number("ChatRequest/properties/messages/maxItems"), limits.max_messages);
  EXPECT_EQ(number("ChatRequest/properties/tools/maxItems"), limits.max_tools);
}

TEST_F(OpenApi, HasAllRoutes) {
  for (const char* path :
       {"~1v1~1models/get", "~1v1~1models~1{model}/get", "~1v1~1completions/post",
        "~1v1~1chat~1completions/post", "~1tokenize/post", "~1detokenize/post",
        "~1tokenizer_info/get", "~1health/get", "~1ready/get", "~1version/get", "~1metrics/get",
        "~1openapi.json/get"}) {
    EXPECT_TRUE(has("/paths/" + std::string(path) + "/responses/200")) << path;
    EXPECT_TRUE(has("/paths/" + std::string(path) + "/responses/500")) << path;
  }
}

}  // namespace
}  // namespace quire::server
