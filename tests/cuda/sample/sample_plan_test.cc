// The kernels that sample each row: needs no GPU.
#include "cuda/sample/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cuda/sample/row_upload.h"
#include "sched/policy.h"

namespace quire::cuda {
namespace {

using ::testing::ElementsAre;

RowState plain(float temperature = 1.0F) {
  RowState state = {};
  state.temperature = temperature;
  state.top_p = 1;
  state.num_logprobs = -1;
  return state;
}

RowState with_rules() {
  RowState state = plain();
  state.flags = kHasPenalties;
  return state;
}

std::vector<LogitsRowUse> uses(std::initializer_list<int> rows) {
  std::vector<LogitsRowUse> all;
  for (const int row : rows) all.push_back({.row = row, .mask_idx = -1});
  return all;
}

TEST(SamplePlan, EachRowTakesThePassThatItNeeds) {
  SampledRows rows(8, 2);
  RowState filtered = plain();
  filtered.top_k = 5;
  RowState greedy_filtered = filtered;
  greedy_filtered.temperature = 0;
  RowState with_logprobs = plain();
  with_logprobs.num_logprobs = 0;
  rows.add(0, plain(0));
  rows.add(1, filtered);
  rows.add(2, with_rules());
  rows.add(3, with_logprobs);
  rows.add(4, greedy_filtered);
  const SamplePlan plan = rows.plan(uses({0, 1, 2, 3, 4}));
  EXPECT_THAT(plan.counts, ElementsAre(3, 1, 1));
  EXPECT_TRUE(plan.is_mixed());
  EXPECT_TRUE(plan.is_random);
  EXPECT_TRUE(plan.has_logprobs);
  EXPECT_FALSE(plan.has_masks);
  EXPECT_EQ(plan.rows[1].pass, SamplePass::kFilter);
  EXPECT_EQ(plan.rows[2].pass, SamplePass::kRules);

  const SamplePlan greedy = rows.plan(uses({0, 4}));
  EXPECT_FALSE(greedy.is_mixed());
  EXPECT_FALSE(greedy.is_random);
  EXPECT_FALSE(greedy.has_logprobs);
}

TEST(SamplePlan, PaddingLaunchesNothingOfItsOwn) {
  SampledRows rows(2, 2);
  rows.add(0, with_rules());
  rows.add(1, with_rules());
  const SamplePlan plan = rows.plan(uses({0, 1, -1, -1}));
  EXPECT_THAT(plan.counts, ElementsAre(0, 0, 4));
  EXPECT_FALSE(plan.is_mixed());
  EXPECT_FALSE(rows.plan(uses({-1})).is_mixed());
}

TEST(SamplePlan, AMaskIsARuleForItsStep) {
  SampledRows rows(2, 1);
  rows.add(0, plain());
  rows.add(1, plain());
  std::vector<LogitsRowUse> step = uses({0, 1});
  step[1].mask_idx = 0;
  const SamplePlan masked = rows.plan(step);
  EXPECT_THAT(masked.counts, ElementsAre(1, 0, 1));
  EXPECT_TRUE(masked.is_mixed());
  step[0].mask_idx = 0;
  EXPECT_TRUE(rows.plan(step).is_mixed());
  EXPECT_THAT(rows.plan(uses({0, 1})).counts, ElementsAre(2, 0, 0));
}

TEST(SamplePlan, MinTokensEnd) {
  SampledRows rows(2, 1);
  RowState state = plain();
  state.flags = kHasStops;
  state.num_output = 2;
  state.min_tokens = 5;
  rows.add(0, state);
  rows.add(1, plain());
  for (int step = 0; step < 3; ++step) {
    EXPECT_THAT(rows.plan(uses({0, 1})).counts, ElementsAre(1, 0, 1)) << step;
    rows.plan(uses({1}));  // a step without the row does not count
  }
  EXPECT_THAT(rows.plan(uses({0, 1})).counts, ElementsAre(2, 0, 0));
}

// The host does not know how many tokens of a span are kept: at least one is.
TEST(SamplePlan, ASpanCountsOnceTowardsMinTokens) {
  SampledRows rows(2, 1);
  RowState state = plain();
  state.flags = kHasStops;
  state.min_tokens = 2;
  rows.add(0, state);
  const std::vector<LogitsRowUse> span = {
      {.row = 0, .offset = 0}, {.row = 0, .offset = 1}, {.row = 0, .offset = 2}};
  EXPECT_THAT(rows.plan(span).counts, ElementsAre(0, 0, 3));
  EXPECT_THAT(rows.plan(span).counts, ElementsAre(0, 0, 3));
  EXPECT_THAT(rows.plan(span).counts, ElementsAre(3, 0, 0));
}

TEST(SamplePlan, TablesGoToRowsWithRulesAndComeBack) {
  SampledRows rows(4, 2);
  EXPECT_EQ(rows.add(0, plain()), -1);
  const int first = rows.add(1, with_rules());
  const int second = rows.add(2, with_rules());
  EXPECT_GE(first, 0);
  EXPECT_GE(second, 0);
  EXPECT_NE(first, second);
  rows.remove(1);
  rows.remove(1);
  EXPECT_EQ(rows.add(3, with_rules()), first);
  EXPECT_EQ(rows.add(2, with_rules()), second);  // replaces the previous sequence
  EXPECT_EQ(rows.add(2, plain()), -1);
  EXPECT_EQ(rows.add(0, with_rules()), second);
}

// The scheduler counts the sequences that may need a table, and RowUpload decides which do.
TEST(SamplePlan, NoSequenceNeedsATableThatTheSchedulerDoesNotCount) {
  const RowLimits limits = {.vocab_size = 100, .max_tokens_per_seq = 64};
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
        spec.stop_token_ids = {7};
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
    RowUpload upload(limits);
    EXPECT_EQ(upload.append(added).flags != 0, has_rules(spec)) << mask;
  }
}

TEST(SamplePlanDeathTest, MoreSequencesWithRulesThanTablesIsABrokenInvariant) {
  SampledRows rows(2, 1);
  rows.add(0, with_rules());
  EXPECT_DEATH(rows.add(1, with_rules()), "rule tables");
}

}  // namespace
}  // namespace quire::cuda
