#include "sample/logits_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Case {
  SamplingParams params;
  std::vector<int32_t> token_ids = {0};
  int num_prompt = 1;
  std::vector<int32_t> stop = {};
  std::vector<std::vector<int32_t>> bad_words = {};

  LogitsRules rules(int vocab_size = 6) const {
    return {std::make_shared<const SamplingParams>(params),
            token_ids,
            num_prompt,
            stop,
            bad_words,
            vocab_size};
  }
  std::vector<float> apply(std::vector<float> logits) const {
    rules(static_cast<int>(logits.size())).apply(logits);
    return logits;
  }
};

TEST(LogitsRules, WithoutRulesNothingChanges) {
  const Case plain;
  EXPECT_FALSE(plain.rules().changes_logits());
  EXPECT_THAT(plain.apply({1, -2, 3}), ElementsAre(1, -2, 3));
}

TEST(LogitsRules, AllowedIdsForbidAllOthers) {
  Case c;
  c.params.allowed_token_ids = {2, 0, 2};
  EXPECT_THAT(c.apply({1, 2, 3, 4}), ElementsAre(1, kNone, 3, kNone));
}

TEST(LogitsRules, StopIdsAreForbiddenBeforeMinTokens) {
  Case c;
  c.params.min_tokens = 2;
  c.stop = {1, 3, 77, -5};
  LogitsRules rules = c.rules(4);
  std::vector<float> logits = {1, 2, 3, 4};
  rules.apply(logits);
  EXPECT_THAT(logits, ElementsAre(1, kNone, 3, kNone));
  rules.append_output(0);
  EXPECT_TRUE(rules.changes_logits());
  rules.append_output(0);
  EXPECT_FALSE(rules.changes_logits());
  logits = {1, 2, 3, 4};
  rules.apply(logits);
  EXPECT_THAT(logits, ElementsAre(1, 2, 3, 4));
}

TEST(LogitsRules, OutputKnownAfterAPreemptionCounts) {
  Case c;
  c.params.min_tokens = 2;
  c.stop = {1};
  c.token_ids = {0, 0, 0};
  c.num_prompt = 1;
  EXPECT_THAT(c.apply({1, 2}), ElementsAre(1, 2));
}

TEST(LogitsRules, BadWordsAreNeverCompleted) {
  Case c;
  c.bad_words = {{4}, {1, 2, 3}, {9, 1}, {}};
  c.token_ids = {1, 2};  // a prompt, which does not count
  c.num_prompt = 2;
  LogitsRules rules = c.rules();
  const auto apply = [&] {
    std::vector<float> logits(6, 1.F);
    rules.apply(logits);
    return logits;
  };
  EXPECT_THAT(apply(), ElementsAre(1, 1, 1, 1, kNone, 1));
  rules.append_output(1);
  rules.append_output(2);
  EXPECT_THAT(apply(), ElementsAre(1, 1, 1, kNone, kNone, 1));
  rules.append_output(5);
  EXPECT_THAT(apply(), ElementsAre(1, 1, 1, 1, kNone, 1));
  rules.append_output(1);
  rules.append_output(1);
  rules.append_output(2);
  EXPECT_THAT(apply(), ElementsAre(1, 1, 1, kNone, kNone, 1));
}

TEST(LogitsRules, RepetitionCountsPromptAndOutput) {
  Case c;
  c.params.repetition_penalty = 2;
  c.token_ids = {0, 1, 2};
  c.num_prompt = 2;
  EXPECT_THAT(c.apply({4, -4, 0, 4}), ElementsAre(2, -8, 0, 4));
}

TEST(LogitsRules, FrequencyAndPresenceCountOutputOnly) {
  Case c;
  c.params.frequency_penalty = 0.5;
  c.params.presence_penalty = 0.25;
  c.token_ids = {0, 1, 1, 1, 2};
  c.num_prompt = 1;
  EXPECT_THAT(c.apply({1, 1, 1, 1}), ElementsAre(1, -0.75, 0.25, 1));
}

TEST(LogitsRules, BiasComesBeforePenalties) {
  Case c;
  c.params.logit_bias = {{0, 3.F}, {1, -2.F}};
  c.params.repetition_penalty = 2;
  c.token_ids = {0};
  EXPECT_THAT(c.apply({-1, 1}), ElementsAre(1, -1)) << "(-1 + 3) / 2";
}

TEST(LogitsRules, BiasDoesNotBringBackWhatIsForbidden) {
  Case c;
  c.params.allowed_token_ids = {0};
  c.params.logit_bias = {{1, 100.F}};
  EXPECT_THAT(c.apply({1, 1}), ElementsAre(1, kNone));
}

// Against the formulas written over dense counts.
TEST(LogitsRules, PenaltiesAgreeWithDenseCounts) {
  std::mt19937 rng(3);
  constexpr size_t kVocab = 50;
  for (int round = 0; round < 50; ++round) {
    Case c;
    c.params.repetition_penalty = 0.5F + static_cast<float>(rng() % 100) / 50;
    c.params.frequency_penalty = static_cast<float>(rng() % 400) / 100 - 2;
    c.params.presence_penalty = static_cast<float>(rng() % 400) / 100 - 2;
    c.token_ids.clear();
    for (int i = 0; i < 40; ++i) c.token_ids.push_back(static_cast<int32_t>(rng() % kVocab));
    c.num_prompt = static_cast<int>(rng() % 40);
    std::vector<float> logits(kVocab);
    for (float& x : logits) x = static_cast<float>(rng() % 2000) / 100 - 10;
    const std::vector<float> got = c.apply(logits);
    for (size_t id = 0; id < kVocab; ++id) {
      bool seen = false;
      double count = 0;
      for (size_t i = 0; i < c.token_ids.size(); ++i) {
        if (c.token_ids[i] != static_cast<int32_t>(id)) continue;
        seen = true;
        count += i >= static_cast<size_t>(c.num_prompt) ? 1 : 0;
      }
      double expected = logits[id];
      const double repetition = c.params.repetition_penalty;
      if (seen) expected = expected > 0 ? expected / repetition : expected * repetition;
      expected -= c.params.frequency_penalty * count + c.params.presence_penalty * (count > 0);
      EXPECT_NEAR(got[id], expected, 1e-4);
    }
  }
}

}  // namespace
}  // namespace quire
