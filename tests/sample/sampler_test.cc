#include "sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace quire {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kNone = -std::numeric_limits<float>::infinity();

SamplerState sampler(const SamplingParams& params, int vocab_size, uint64_t seed = 1,
                     std::vector<int32_t> token_ids = {0}, int num_prompt = 1) {
  return {std::make_shared<const SamplingParams>(params),
          seed,
          token_ids,
          num_prompt,
          {},
          {},
          vocab_size};
}

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

int32_t sample(SamplerState& state, std::vector<float> logits) {
  int32_t token_id = -1;
  PositionLogprobs logprobs;
  const Status status = state.sample(logits, {}, token_id, logprobs);
  EXPECT_TRUE(status.ok()) << status.message();
  return token_id;
}

std::string failure(const SamplingParams& params, std::vector<float> logits,
                    StatusCode code = StatusCode::kInternal) {
  SamplerState state = sampler(params, static_cast<int>(logits.size()));
  int32_t token_id = -1;
  PositionLogprobs logprobs;
  const Status status = state.sample(logits, {}, token_id, logprobs);
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(state.last_token(), 0) << "a failure leaves no state";
  return status.message();
}

std::vector<float> random_logits(std::mt19937& rng, size_t count) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(count);
  for (float& x : logits) x = normal(rng);
  return logits;
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  SamplerState state = sampler(greedy(), 100);
  std::vector<float> logits(100, 1.F);
  EXPECT_EQ(sample(state, logits), 0);
  logits[70] = logits[31] = logits[99] = 5;
  EXPECT_EQ(sample(state, logits), 31);
  EXPECT_EQ(state.last_token(), 31);
  logits[99] = 6;
  EXPECT_EQ(sample(state, logits), 99);
  SamplingParams almost;
  almost.temperature = 9e-6F;
  SamplerState cold = sampler(almost, 100);
  EXPECT_EQ(sample(cold, logits), 99);
}

TEST(Sampler, BrokenLogitsAreAnErrorThatNamesThem) {
  for (const size_t at : {size_t{0}, size_t{31}, size_t{32}, size_t{66}}) {
    std::vector<float> logits(67, 1.F);
    logits[at] = std::numeric_limits<float>::quiet_NaN();
    const std::string token = "NaN for token " + std::to_string(at);
    EXPECT_THAT(failure(greedy(), logits), AllOf(HasSubstr(token), HasSubstr("position 1;")));
    EXPECT_THAT(failure({}, logits), HasSubstr(token));
  }
  EXPECT_THAT(failure(greedy(), {kNone, kNone}), HasSubstr("-infinity for every token"));
  EXPECT_THAT(failure({}, {1, -kNone}), HasSubstr("got infinity"));
}

TEST(Sampler, RulesThatForbidAllTokensFailTheRequest) {
  SamplingParams params = greedy();
  params.allowed_token_ids = {1};
  EXPECT_THAT(failure(params, {1, kNone}, StatusCode::kInvalidArgument),
              HasSubstr("allowed_token_ids"));
}

TEST(Sampler, RulesComeBeforeGreedy) {
  SamplingParams params = greedy();
  params.logit_bias = {{0, -5.F}};
  SamplerState state = sampler(params, 3);
  EXPECT_EQ(sample(state, {3, 1, 2}), 2);
}

TEST(Sampler, PenaltiesCountSampledTokens) {
  SamplingParams params = greedy();
  params.presence_penalty = 1.5;
  SamplerState state = sampler(params, 3);
  EXPECT_EQ(sample(state, {3, 2, 1}), 0);
  EXPECT_EQ(sample(state, {3, 2, 1}), 1);
  EXPECT_EQ(sample(state, {3, 2, 1}), 0);
}

TEST(Sampler, LogprobsAreTheModelsOwn) {
  SamplingParams params = greedy();
  params.logit_bias = {{0, -100.F}};
  params.logprobs = 2;
  SamplerState state = sampler(params, 3);
  std::vector<float> logits = {3, 1, 2};
  int32_t token_id = -1;
  PositionLogprobs logprobs;
  ASSERT_TRUE(state.sample(logits, {}, token_id, logprobs).ok());
  EXPECT_EQ(token_id, 2);
  ASSERT_THAT(logprobs, SizeIs(3));
  EXPECT_EQ(logprobs[0].token_id, 2);
  EXPECT_EQ(logprobs[0].rank, 2);
  const double norm = std::log(std::exp(3.0) + std::exp(1.0) + std::exp(2.0));
  EXPECT_NEAR(logprobs[0].logprob, 2 - norm, 1e-6);
  EXPECT_EQ(logprobs[1].token_id, 0);
  EXPECT_NEAR(logprobs[1].logprob, 3 - norm, 1e-6);
}

TEST(Sampler, NoLogprobsUnlessAskedFor) {
  SamplerState state = sampler({}, 2);
  std::vector<float> logits = {3, 1};
  int32_t token_id = -1;
  PositionLogprobs logprobs;
  ASSERT_TRUE(state.sample(logits, {}, token_id, logprobs).ok());
  EXPECT_THAT(logprobs, IsEmpty());
}

std::vector<int32_t> draw(SamplerState& state, int count, unsigned logits_seed) {
  std::mt19937 rng(logits_seed);
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(sample(state, random_logits(rng, 300)));
  return ids;
}

TEST(Sampler, ASeedGivesTheSameTokensWhateverTheNeighbours) {
  for (const float top_p : {1.F, 0.9F}) {
    SamplingParams params;
    params.top_p = top_p;
    SamplerState alone = sampler(params, 300, 42);
    const std::vector<int32_t> expected = draw(alone, 20, 5);
    SamplerState among = sampler(params, 300, 42), neighbour = sampler({}, 300, 43);
    std::mt19937 rng(5), other(6);
    std::vector<int32_t> got;
    for (int i = 0; i < 20; ++i) {
      sample(neighbour, random_logits(other, 300));
      got.push_back(sample(among, random_logits(rng, 300)));
    }
    EXPECT_EQ(got, expected);
    SamplerState another = sampler(params, 300, 41);
    EXPECT_NE(draw(another, 20, 5), expected);
  }
}

TEST(Sampler, APreemptionChangesNothing) {
  SamplingParams params;
  params.frequency_penalty = 0.7F;
  params.repetition_penalty = 1.2F;
  SamplerState straight = sampler(params, 300, 9, {1, 2, 3}, 3);
  std::vector<int32_t> tokens = {1, 2, 3};
  SamplerState again = sampler(params, 300, 9, tokens, 3);
  std::mt19937 rng(8);
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> logits = random_logits(rng, 300);
    tokens.push_back(sample(straight, logits));
    EXPECT_EQ(sample(again, logits), tokens.back());
    if (i % 6 == 5) again = sampler(params, 300, 9, tokens, 3);
    EXPECT_EQ(again.last_token(), tokens.back());
  }
}

TEST(SamplerDeathTest, LogitsMustBeOfTheVocabulary) {
  SamplerState state = sampler({}, 3);
  EXPECT_DEATH(sample(state, {1, 2}), "not the size of the vocabulary");
}

TEST(Sampler, AMaskLeavesItsTokensAloneAndTheLogProbabilitiesAsTheyWere) {
  SamplingParams params = greedy();
  params.logprobs = 1;
  std::vector<float> logits(40, 0.0F);
  logits[39] = 3.0F, logits[33] = 2.0F, logits[1] = 1.0F;
  for (const auto& [mask, expected] : std::vector<std::pair<std::vector<uint32_t>, int32_t>>{
           {{0b10, 0b10}, 33}, {{0b10, 0}, 1}, {{0b10}, 1}, {{0b110, 0x80}, 39}}) {
    SamplerState state = sampler(params, 40);
    std::vector<float> copy = logits;
    int32_t token_id = -1;
    PositionLogprobs logprobs;
    ASSERT_TRUE(state.sample(copy, mask, token_id, logprobs).ok());
    EXPECT_EQ(token_id, expected);
    EXPECT_EQ(logprobs.at(1).token_id, 39) << "logprobs are the model's, before the mask";
  }
}

TEST(Sampler, AMaskOfNothingFails) {
  for (const std::vector<uint32_t>& nothing : std::vector<std::vector<uint32_t>>{{0}, {}}) {
    SamplerState state = sampler(greedy(), 4);
    std::vector<float> logits(4, 1.0F);
    int32_t token_id = -1;
    PositionLogprobs logprobs;
    const Status status = state.sample(logits, nothing, token_id, logprobs);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(state.last_token(), 0) << "as it was";
  }
}

using ::testing::ElementsAre;
using ::testing::FloatEq;

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
  c.token_ids = {1, 2};  // the prompt does not count
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

TEST(LogitsRules, BiasDoesNotAllowForbiddenTokens) {
  Case c;
  c.params.allowed_token_ids = {0};
  c.params.logit_bias = {{1, 100.F}};
  EXPECT_THAT(c.apply({1, 1}), ElementsAre(1, kNone));
}

// Compares the penalties with the formulas over dense counts.
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

TEST(Logprobs, AgreeWithFp64SoftmaxAndAFullSort) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 5);
  std::vector<float> logits(1000);
  for (float& x : logits) x = normal(rng);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));

  const PositionLogprobs all = compute_logprobs(logits, order[37], 20);
  ASSERT_EQ(all.size(), 21U);
  EXPECT_EQ(all[0].token_id, order[37]);
  EXPECT_EQ(all[0].rank, 38);
  EXPECT_NEAR(all[0].logprob, logits[order[37]] - std::log(sum), 1e-5);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].token_id, order[i - 1]);
    EXPECT_EQ(all[i].rank, static_cast<int>(i));
    EXPECT_NEAR(all[i].logprob, logits[order[i - 1]] - std::log(sum), 1e-5);
  }
}

TEST(Logprobs, HugeAndForbiddenLogitsStayFinite) {
  const float none = -std::numeric_limits<float>::infinity();
  const PositionLogprobs all = compute_logprobs(std::vector<float>{1e30F, none, 1e30F}, 0, 2);
  EXPECT_NEAR(all[0].logprob, -std::log(2.0), 1e-6);
  EXPECT_EQ(all[1].token_id, 0);
  EXPECT_EQ(all[2].token_id, 2);
}

TEST(Logprobs, EqualsAreListedByIdAndShareTheLastRank) {
  const PositionLogprobs all = compute_logprobs(std::vector<float>{1, 3, 2, 3, 3}, 1, 2);
  EXPECT_EQ(all[0].rank, 3);
  EXPECT_EQ(all[1].token_id, 1);
  EXPECT_EQ(all[2].token_id, 3);
}

TEST(Logprobs, NoneOfTheMostLikelyAndMoreThanThereAre) {
  EXPECT_EQ(compute_logprobs(std::vector<float>{1, 2}, 0, 0).size(), 1U);
  EXPECT_EQ(compute_logprobs(std::vector<float>{1, 2}, 0, 9).size(), 3U);
}

// Parameters with every kind of rule and filter.
SamplingParams ruled(int top_k, float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.repetition_penalty = 1.5F;
  params.frequency_penalty = 0.5F;
  params.presence_penalty = 0.25F;
  params.min_tokens = 5;
  params.logit_bias = {{3, 1.5F}};
  params.logprobs = 2;
  return params;
}

SamplerState ruled_state(const SamplingParams& params, const std::vector<int32_t>& token_ids) {
  return {std::make_shared<const SamplingParams>(params), 11, token_ids, 2, {4}, {{5, 6}, {7}}, 12};
}

std::vector<std::pair<int32_t, double>> distribution(const SamplerState& state,
                                                     const std::vector<float>& logits) {
  TokenDistribution target;
  EXPECT_TRUE(state.distribution(logits, {}, target).ok());
  std::vector<std::pair<int32_t, double>> probs;
  double total = 0;
  for (const auto& [weight, token_id] : target.candidates) {
    probs.emplace_back(token_id, weight / target.total);
    total += weight;
  }
  EXPECT_EQ(total, target.total);
  std::ranges::sort(probs);
  return probs;
}

TEST(Drafts, ADistributionIsThatOfTheSampledToken) {
  std::mt19937 rng(3);
  for (const int top_k : {0, 4}) {
    for (const float temperature : {0.F, 0.7F}) {
      SamplerState state = ruled_state(ruled(top_k, temperature), {5, 6});
      for (int i = 0; i < 200; ++i) {
        const std::vector<float> logits = random_logits(rng, 12);
        TokenDistribution target;
        ASSERT_TRUE(state.distribution(logits, {}, target).ok());
        const int32_t drawn = sample_gumbel_max(target.candidates, state.draft_noise().token(0));
        EXPECT_EQ(sample(state, logits), drawn);
        EXPECT_EQ(target.candidates.size() == 1, temperature == 0);
      }
    }
  }
}

// A draft that is assumed changes the rules of the next position as a known token does; afterwards
// only the accepted ones count.
TEST(Drafts, AssumedDraftsCountForTheRulesUntilTheyAreRejected) {
  const std::vector<int32_t> known = {5, 8, 5};  // the last one is output
  const std::vector<int32_t> drafts = {7, 5, 8, 5};
  std::mt19937 rng(4);
  const std::vector<float> logits = random_logits(rng, 12);
  const SamplingParams params = ruled(0, 1);
  for (size_t num_assumed = 0; num_assumed <= drafts.size(); ++num_assumed) {
    for (size_t num_accepted = 0; num_accepted <= num_assumed; ++num_accepted) {
      SamplerState state = ruled_state(params, known);
      std::vector<int32_t> tokens = known;
      for (size_t i = 0; i < num_assumed; ++i) {
        state.assume(drafts[i]);
        tokens.push_back(drafts[i]);
        EXPECT_EQ(distribution(state, logits), distribution(ruled_state(params, tokens), logits));
      }
      EXPECT_EQ(state.num_tokens(), 3);
      EXPECT_EQ(state.last_token(), 5);
      state.settle(num_accepted);
      tokens.resize(known.size() + num_accepted);
      EXPECT_EQ(state.num_tokens(), static_cast<int>(tokens.size()));
      EXPECT_EQ(state.last_token(), tokens.back());
      EXPECT_EQ(distribution(state, logits), distribution(ruled_state(params, tokens), logits));
      state.append(9);
      tokens.push_back(9);
      EXPECT_EQ(state.last_token(), 9);
      SamplerState expected = ruled_state(params, tokens);
      EXPECT_EQ(sample(state, logits), sample(expected, logits));
    }
  }
}

TEST(Drafts, ADistributionFailsAsASampleDoes) {
  SamplerState state = sampler({}, 3);
  TokenDistribution target;
  const std::vector<float> broken = {0, std::nanf(""), 1};
  EXPECT_THAT(state.distribution(broken, {}, target).message(), HasSubstr("position 1; got NaN"));
  state.assume(2);
  EXPECT_THAT(state.distribution(broken, {}, target).message(), HasSubstr("position 2; got NaN"));
  const std::vector<uint32_t> none = {0};
  const std::vector<float> logits = {0, 1, 2};
  EXPECT_EQ(state.distribution(logits, none, target).code(), StatusCode::kInvalidArgument);
}

}  // namespace

}  // namespace quire
