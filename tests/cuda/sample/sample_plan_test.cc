// The kernels that sample each row: needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cuda/sample/sampled_slots.h"
#include "sched/policy.h"

namespace quire::cuda {
namespace {

using ::testing::ElementsAre;

SlotState plain(float temperature = 1.0F) {
  SlotState state = {};
  state.temperature = temperature;
  state.top_p = 1;
  state.num_logprobs = -1;
  return state;
}

SlotState with_rules() {
  SlotState state = plain();
  state.flags = kHasPenalties;
  return state;
}

std::vector<LogitsRowUse> uses(std::initializer_list<int> slots) {
  std::vector<LogitsRowUse> all;
  for (const int slot : slots) all.push_back({.slot = slot, .mask_idx = -1});
  return all;
}

TEST(SamplePlan, EachRowTakesThePassThatItNeeds) {
  SampledSlots slots(8, 2);
  SlotState filtered = plain();
  filtered.top_k = 5;
  SlotState greedy_filtered = filtered;
  greedy_filtered.temperature = 0;
  SlotState with_logprobs = plain();
  with_logprobs.num_logprobs = 0;
  slots.add(0, plain(0));
  slots.add(1, filtered);
  slots.add(2, with_rules());
  slots.add(3, with_logprobs);
  slots.add(4, greedy_filtered);
  const SamplePlan plan = slots.plan(uses({0, 1, 2, 3, 4}));
  EXPECT_THAT(plan.counts, ElementsAre(3, 1, 1));
  EXPECT_TRUE(plan.is_mixed());
  EXPECT_TRUE(plan.is_random);
  EXPECT_TRUE(plan.has_logprobs);
  EXPECT_FALSE(plan.has_masks);
  EXPECT_EQ(plan.rows[1].pass, SamplePass::kFilter);
  EXPECT_EQ(plan.rows[2].pass, SamplePass::kRules);

  const SamplePlan greedy = slots.plan(uses({0, 4}));
  EXPECT_FALSE(greedy.is_mixed());
  EXPECT_FALSE(greedy.is_random);
  EXPECT_FALSE(greedy.has_logprobs);
}

TEST(SamplePlan, ChoosesFromPartsIfNoRowNeedsMore) {
  SampledSlots slots(8, 2);
  SlotState filtered = plain();
  filtered.min_p = 0.1F;
  SlotState greedy_filtered = filtered;
  greedy_filtered.temperature = 0;
  SlotState with_logprobs = plain();
  with_logprobs.num_logprobs = 0;
  SlotState with_min_tokens = plain(0);
  with_min_tokens.flags = kHasStops;
  with_min_tokens.min_tokens = 2;
  slots.add(0, plain(0));
  slots.add(1, plain());
  slots.add(2, greedy_filtered);
  slots.add(3, filtered);
  slots.add(4, with_rules());
  slots.add(5, with_logprobs);
  slots.add(6, with_min_tokens);
  EXPECT_TRUE(slots.plan(uses({-1})).chooses_from_parts());
  EXPECT_TRUE(slots.plan(uses({0, 1, 2, -1})).chooses_from_parts());
  for (const int other : {3, 4, 5}) {
    EXPECT_FALSE(slots.plan(uses({0, 1, other})).chooses_from_parts()) << other;
  }
  for (const bool is_reached : {false, false, true}) {
    EXPECT_EQ(slots.plan(uses({0, 6})).chooses_from_parts(), is_reached);
  }
  std::vector<LogitsRowUse> masked = uses({0, 1});
  masked[1].mask_idx = 0;
  EXPECT_FALSE(slots.plan(masked).chooses_from_parts());
  SampledSlots compared(1, 1, SamplePass::kFilter);
  compared.add(0, plain(0));
  EXPECT_FALSE(compared.plan(uses({0})).chooses_from_parts());
}

// Drafts that are compared by their probabilities need every row's distribution.
TEST(SamplePlan, NoRowTakesAPassBeforeTheFirst) {
  SampledSlots slots(4, 2, SamplePass::kFilter);
  slots.add(0, plain(0));
  slots.add(1, plain());
  slots.add(2, with_rules());
  EXPECT_THAT(slots.plan(uses({0, -1, 1, -1})).counts, ElementsAre(0, 4, 0));
  EXPECT_THAT(slots.plan(uses({0, 1, 2})).counts, ElementsAre(0, 2, 1));
}

TEST(SamplePlan, PaddingAloneTakesTheFirstPass) {
  const SampledSlots slots(2, 1);
  const SampledSlots compared(2, 1, SamplePass::kFilter);
  for (const bool is_random : {false, true}) {
    const SamplePlan plan = slots.plan_padding(3, is_random);
    EXPECT_THAT(plan.counts, ElementsAre(3, 0, 0));
    EXPECT_EQ(plan.is_random, is_random);
    EXPECT_FALSE(plan.is_mixed());
    EXPECT_TRUE(plan.chooses_from_parts());
    const SamplePlan of_filters = compared.plan_padding(3, is_random);
    EXPECT_THAT(of_filters.counts, ElementsAre(0, 3, 0));
    EXPECT_FALSE(of_filters.is_random);
    EXPECT_FALSE(of_filters.chooses_from_parts());
  }
}

TEST(SamplePlan, PaddingLaunchesNothingOfItsOwn) {
  SampledSlots slots(2, 2);
  slots.add(0, with_rules());
  slots.add(1, with_rules());
  const SamplePlan plan = slots.plan(uses({0, 1, -1, -1}));
  EXPECT_THAT(plan.counts, ElementsAre(0, 0, 4));
  EXPECT_FALSE(plan.is_mixed());
  EXPECT_FALSE(slots.plan(uses({-1})).is_mixed());
}

TEST(SamplePlan, AMaskIsARuleForItsStep) {
  SampledSlots slots(2, 1);
  slots.add(0, plain());
  slots.add(1, plain());
  std::vector<LogitsRowUse> step = uses({0, 1});
  step[1].mask_idx = 0;
  const SamplePlan masked = slots.plan(step);
  EXPECT_THAT(masked.counts, ElementsAre(1, 0, 1));
  EXPECT_TRUE(masked.is_mixed());
  step[0].mask_idx = 0;
  EXPECT_TRUE(slots.plan(step).is_mixed());
  EXPECT_THAT(slots.plan(uses({0, 1})).counts, ElementsAre(2, 0, 0));
}

TEST(SamplePlan, MinTokensEnd) {
  SampledSlots slots(2, 1);
  SlotState state = plain();
  state.flags = kHasStops;
  state.num_output = 2;
  state.min_tokens = 5;
  slots.add(0, state);
  slots.add(1, plain());
  for (int step = 0; step < 3; ++step) {
    EXPECT_THAT(slots.plan(uses({0, 1})).counts, ElementsAre(1, 0, 1)) << step;
    slots.plan(uses({1}));  // a step without the slot does not count
  }
  EXPECT_THAT(slots.plan(uses({0, 1})).counts, ElementsAre(2, 0, 0));
}

// The host does not know how many tokens of a span are kept: at least one is.
TEST(SamplePlan, ASpanCountsOnceTowardsMinTokens) {
  SampledSlots slots(2, 1);
  SlotState state = plain();
  state.flags = kHasStops;
  state.min_tokens = 2;
  slots.add(0, state);
  const std::vector<LogitsRowUse> span = {
      {.slot = 0, .offset = 0}, {.slot = 0, .offset = 1}, {.slot = 0, .offset = 2}};
  EXPECT_THAT(slots.plan(span).counts, ElementsAre(0, 0, 3));
  EXPECT_THAT(slots.plan(span).counts, ElementsAre(0, 0, 3));
  EXPECT_THAT(slots.plan(span).counts, ElementsAre(3, 0, 0));
}

TEST(SamplePlan, TablesGoToRowsWithRulesAndComeBack) {
  SampledSlots slots(4, 2);
  EXPECT_EQ(slots.add(0, plain()), -1);
  const int first = slots.add(1, with_rules());
  const int second = slots.add(2, with_rules());
  EXPECT_GE(first, 0);
  EXPECT_GE(second, 0);
  EXPECT_NE(first, second);
  slots.remove(1);
  slots.remove(1);
  EXPECT_EQ(slots.add(3, with_rules()), first);
  EXPECT_EQ(slots.add(2, with_rules()), second);  // replaces the previous sequence
  EXPECT_EQ(slots.add(2, plain()), -1);
  EXPECT_EQ(slots.add(0, with_rules()), second);
}

// The scheduler counts the sequences that may need a table, and SlotUpload decides which do.
TEST(SamplePlan, NoSequenceNeedsATableThatTheSchedulerDoesNotCount) {
  const DeviceSamplerLimits limits = {.vocab_size = 100, .max_tokens_per_seq = 64};
  const std::vector<std::function<void(SamplingParams&, SamplingSpec&)>> rules = {
      [](auto& params, auto&) { params.repetition_penalty = 1.1F; },
      [](auto& params, auto&) { params.presence_penalty = -0.5F; },
      [](auto& params, auto&) { params.frequency_penalty = 0.5F; },
      [](auto& params, auto&) {
        params.logit_bias = {{3, 1.0F}};
      },
      [](auto& params, auto&) { params.allowed_token_ids = {4}; },
      [](auto&, auto& spec) {
        spec.bad_words_ids = {{5, 6}};
      },
      [](auto& params, auto& spec) {
        params.min_tokens = 2;
        spec.end_token_ids = {7};
      },
  };
  for (size_t mask = 0; mask < size_t{1} << rules.size(); ++mask) {
    SamplingParams params;
    SamplingSpec spec;
    for (size_t i = 0; i < rules.size(); ++i) {
      if ((mask >> i & 1) != 0) rules[i](params, spec);
    }
    spec.params = std::make_shared<SamplingParams>(params);
    SlotAdded added;
    added.token_ids = std::vector<int32_t>{1, 2};
    added.num_prompt_tokens = 2;
    added.sampling = std::make_shared<SamplingSpec>(spec);
    SlotUpload upload(limits);
    EXPECT_EQ(upload.append(added).flags != 0, has_rules(spec)) << mask;
  }
}

TEST(SamplePlanDeathTest, MoreSequencesWithRulesThanTablesIsABrokenInvariant) {
  SampledSlots slots(2, 1);
  slots.add(0, with_rules());
  EXPECT_DEATH(slots.add(1, with_rules()), "rule tables");
}

}  // namespace
}  // namespace quire::cuda
