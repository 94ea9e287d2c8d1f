#include "bench/dataset.h"

#include <gmock/gmock.h>

#include <set>

#include "base/json.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::bench {
namespace {

using ::testing::HasSubstr;

TEST(RandomDataset, LengthsLieInTheRange) {
  RandomDataset dataset = {.input_len = 100,
                           .output_len = 10,
                           .range_ratio = 0.5,
                           .num_prompts = 500,
                           .seed = 1,
                           .vocab_size = 32};
  std::set<size_t> input_lens;
  for (const DatasetRequest& request : dataset.sample()) {
    input_lens.insert(request.token_ids.size());
    EXPECT_GE(request.output_len, 5);
    EXPECT_LE(request.output_len, 15);
    for (const int32_t id : request.token_ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, 32);
    }
  }
  EXPECT_EQ(*input_lens.begin(), 50U);
  EXPECT_EQ(*input_lens.rbegin(), 150U);
  EXPECT_EQ(dataset.max_prompt_len(), 150);
  EXPECT_EQ(dataset.max_output_len(), 15);
}

TEST(RandomDataset, RepeatsWithItsSeedAlone) {
  const RandomDataset dataset = {
      .input_len = 8, .output_len = 4, .num_prompts = 20, .seed = 5, .vocab_size = 1000};
  RandomDataset other = dataset;
  other.seed = 6;
  EXPECT_EQ(dataset.sample()[19].token_ids, dataset.sample()[19].token_ids);
  EXPECT_NE(dataset.sample()[19].token_ids, other.sample()[19].token_ids);
  EXPECT_EQ(dataset.sample()[0].token_ids.size(), 8U);
  EXPECT_EQ(dataset.sample()[0].output_len, 4);
}

Result<std::vector<Dialogue>> dialogues_of(std::string_view json) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(json, "f"));
  return parse_sharegpt(document, "f");
}

TEST(ParseShareGpt, TakesTheFirstTwoTurns) {
  const auto dialogues = dialogues_of(
      R"([{"conversations": [{"from": "human", "value": "hi"}, {"value": "yo"}, {"value": 3}]},
          {"conversations": [{"value": "alone"}]}, {"id": "none"}])");
  ASSERT_TRUE(dialogues.ok()) << dialogues.status().message();
  ASSERT_EQ(dialogues->size(), 1U);
  EXPECT_EQ((*dialogues)[0].prompt, "hi");
  EXPECT_EQ((*dialogues)[0].completion, "yo");
}

TEST(ParseShareGpt, NamesTheEntryThatIsWrong) {
  EXPECT_THAT(
      dialogues_of(R"([{"conversations": [{"value": 1}, {"value": "a"}]}])").status().message(),
      HasSubstr("entry 0"));
  EXPECT_THAT(dialogues_of("[5]").status().message(), HasSubstr("entry 0"));
  EXPECT_FALSE(dialogues_of("{}").ok());
}

// A tokenizer with one token per byte.
Result<int> count_bytes(std::string_view text) {
  return static_cast<int>(text.size());
}

TEST(ShareGptDataset, PrunesAndDrawsAgain) {
  ShareGptDataset dataset;
  dataset.num_prompts = 7;
  dataset.max_prompt_len = 10;
  dataset.max_total_len = 15;
  dataset.count_tokens = count_bytes;
  const auto requests =
      testing::value_of(dataset.sample({{"abc", "long enough"},    // prompt of 3 tokens
                                        {"abcd", "abc"},           // output of 3 tokens
                                        {"abcdefghijk", "abcd"},   // prompt of 11 tokens
                                        {"abcdefgh", "abcdefgh"},  // 16 tokens together
                                        {"abcdef", "ghijk"}}));
  ASSERT_EQ(requests.size(), 7U);
  for (const DatasetRequest& request : requests) {
    EXPECT_EQ(request.text, "abcdef");
    EXPECT_EQ(request.output_len, 5);
  }
  EXPECT_THAT(dataset.sample({{"a", "b"}}).status().message(), HasSubstr("no dialogue fits"));
}

TEST(ShareGptDataset, SaysWhyATextHasNoTokens) {
  ShareGptDataset dataset;
  dataset.count_tokens = [](std::string_view) -> Result<int> {
    return invalid_argument("no tokenizer");
  };
  EXPECT_EQ(dataset.sample({{"abcd", "efgh"}}).status().message(), "no tokenizer");
}

TEST(ShareGptDataset, OutputLenReplacesTheAnswers) {
  ShareGptDataset dataset;
  dataset.num_prompts = 1;
  dataset.output_len = 2;
  dataset.count_tokens = count_bytes;
  const auto requests = testing::value_of(dataset.sample({{"abcd", "e"}}));
  EXPECT_EQ(requests[0].output_len, 2);
}

TEST(ShareGptDataset, ReadsARealFile) {
  const auto path =
      quire::testing::shared_data_path("datasets/sharegpt_format/fastchat_dummy_conversation.json");
  QUIRE_REQUIRE_SHARED(path);
  const auto document = testing::value_of(JsonDocument::load(path));
  const auto dialogues = testing::value_of(parse_sharegpt(document, "dummy"));
  EXPECT_GE(dialogues.size(), 400U);
}

TEST(UniformBelow, ReachesEveryValue) {
  std::mt19937_64 random(3);
  std::set<uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(uniform_below(random, 7));
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_EQ(*seen.rbegin(), 6U);
}

}  // namespace
}  // namespace quire::bench
