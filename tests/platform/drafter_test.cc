#include "platform/drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace quire {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<int32_t>;

// The definition, step by step. Empty: there is no match.
Tokens expected_drafts(const Tokens& tokens, const LookupConfig& config, size_t num_drafts) {
  for (int length = config.max_match; length >= config.min_match; --length) {
    const auto size = static_cast<size_t>(length);
    if (size >= tokens.size()) continue;
    const Tokens suffix(tokens.end() - length, tokens.end());
    std::vector<size_t> ends;  // the newest first
    for (size_t end = tokens.size() - 1; end >= size; --end) {
      if (std::equal(suffix.begin(), suffix.end(), tokens.begin() + static_cast<int>(end - size))) {
        ends.push_back(end);
      }
    }
    ends.resize(std::min<size_t>(ends.size(), config.by_vote ? LookupConfig::kMaxVotes : 1));
    if (ends.empty()) continue;
    Tokens all = tokens;
    while (all.size() < tokens.size() + num_drafts) {
      const size_t ahead = all.size() - tokens.size();
      std::map<int32_t, int> votes;
      for (const size_t end : ends) ++votes[all[end + ahead]];
      int32_t chosen = -1;
      for (const size_t end : ends) {
        const int32_t token = all[end + ahead];
        if (chosen < 0 || votes[token] > votes[chosen]) chosen = token;
      }
      std::erase_if(ends, [&](size_t end) { return all[end + ahead] != chosen; });
      all.push_back(chosen);
    }
    return {all.begin() + std::ssize(tokens), all.end()};
  }
  return {};
}

Tokens drafts_of(const Tokens& tokens, const LookupConfig& config, size_t num_drafts) {
  Tokens drafts(num_drafts, -1);
  std::vector<float> confidences(num_drafts);
  if (!look_up_drafts(tokens, config, drafts, confidences)) {
    EXPECT_EQ(drafts, Tokens(num_drafts, -1)) << "drafts were written without a match";
    return {};
  }
  return drafts;
}

TEST(LookUpDrafts, ContinuesTheNewestOfTheLongestMatches) {
  const Tokens tokens = {1, 2, 3, 4, 9, 2, 3, 5, 9, 3, 6, 2, 3};
  EXPECT_THAT(drafts_of(tokens, {.min_match = 1, .max_match = 4}, 3), ElementsAre(5, 9, 3));
  EXPECT_THAT(drafts_of(tokens, {.min_match = 1, .max_match = 1}, 2), ElementsAre(6, 2));
  EXPECT_TRUE(drafts_of(tokens, {.min_match = 3, .max_match = 4}, 3).empty());
}

TEST(LookUpDrafts, RepeatsAPeriod) {
  EXPECT_THAT(drafts_of({7, 1, 2, 1, 2}, {.min_match = 2, .max_match = 2}, 5),
              ElementsAre(1, 2, 1, 2, 1));
  EXPECT_THAT(drafts_of({5, 5}, {.min_match = 1, .max_match = 3}, 3), ElementsAre(5, 5, 5));
}

TEST(LookUpDrafts, TakesTheTokenThatMostOccurrencesHaveNext) {
  const Tokens tokens = {1, 4, 8, 1, 4, 9, 1, 5, 7, 1};
  const LookupConfig vote = {.min_match = 1, .max_match = 1, .by_vote = true};
  EXPECT_THAT(drafts_of(tokens, vote, 2), ElementsAre(4, 9));
  EXPECT_THAT(drafts_of(tokens, {.min_match = 1, .max_match = 1}, 2), ElementsAre(5, 7));
}

// Two of three occurrences of 1 continue with 4, and then one has the vote.
TEST(LookUpDrafts, IsSureOfLongMatchesAndOfUnanimousVotes) {
  const Tokens tokens = {1, 4, 8, 1, 4, 9, 1, 5, 7, 1};
  std::vector<int32_t> drafts(2);
  std::vector<float> confidences(2);
  const LookupConfig vote = {.min_match = 1, .max_match = 1, .by_vote = true};
  ASSERT_TRUE(look_up_drafts(tokens, vote, drafts, confidences));
  EXPECT_FLOAT_EQ(confidences[0], 0.5F * 2 / 3);
  EXPECT_FLOAT_EQ(confidences[1], 0.5F / 2);
  const Tokens loop = {6, 7, 8, 6, 7, 8};
  ASSERT_TRUE(look_up_drafts(loop, {.min_match = 1, .max_match = 3}, drafts, confidences));
  EXPECT_THAT(confidences, ElementsAre(0.75F, 0.75F));
}

TEST(LookUpDrafts, HasNoMatchInAShortSequence) {
  EXPECT_TRUE(drafts_of({3}, {.min_match = 1, .max_match = 3}, 2).empty());
  EXPECT_TRUE(drafts_of({3, 4}, {.min_match = 1, .max_match = 3}, 2).empty());
}

TEST(LookUpDrafts, EqualsTheDefinitionOnRandomSequences) {
  std::mt19937 random(5);
  int num_matches = 0;
  for (int run = 0; run < 4000; ++run) {
    const int vocab_size = 1 + static_cast<int>(random() % 4);
    Tokens tokens(1 + random() % 200);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab_size);
    LookupConfig config;
    config.min_match = 1 + static_cast<int>(random() % 4);
    config.max_match = config.min_match + static_cast<int>(random() % 8);
    config.by_vote = random() % 2 == 0;
    const size_t num_drafts = 1 + random() % 8;
    const Tokens expected = expected_drafts(tokens, config, num_drafts);
    ASSERT_EQ(drafts_of(tokens, config, num_drafts), expected) << "run " << run;
    num_matches += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(num_matches, 1000);
}

}  // namespace
}  // namespace quire
