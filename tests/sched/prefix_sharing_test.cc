// Conditions under which sequences share blocks.

#include "sched/scheduler_fixture.h"

namespace quire {
namespace {

TEST_F(SchedulerTest, SharesTheCachedPrefixButComputesTheLastToken) {
  const SeqId a = add(48, 9, {.first_id = 1});
  step();
  EXPECT_EQ(seq(a).num_cached_tokens, 0);
  const SeqId same = add(48, 9, {.first_id = 1});
  const SeqId longer = add(60, 9, {.first_id = 1});
  const BatchPlan plan = step();
  EXPECT_EQ(parts(plan), (Parts{{a, 1}, {same, 16}, {longer, 12}}));
  EXPECT_EQ(seq(same).num_cached_tokens, 32);
  EXPECT_EQ(seq(longer).num_cached_tokens, 48);
  EXPECT_EQ(seq(longer).tables[0].ids[0], seq(a).tables[0].ids[0]);
  EXPECT_EQ(seq(longer).tables[0].ids[2], seq(a).tables[0].ids[2]);
  EXPECT_NE(seq(same).tables[0].ids[2], seq(a).tables[0].ids[2]);
  EXPECT_EQ(scheduler().stats().prefix_cache_hits, 80);
  EXPECT_EQ(scheduler().stats().prefix_cache_queries, 48 + 48 + 60);
}

TEST_F(SchedulerTest, SharesWithinOneStep) {
  const SeqId a = add(40, 9, {.first_id = 1});
  const SeqId b = add(40, 9, {.first_id = 1});
  EXPECT_EQ(parts(step()), (Parts{{a, 40}, {b, 8}}));
}

TEST_F(SchedulerTest, SharesBlocksThatDecodingFilled) {
  const SeqId a = add(16, 20);
  for (int i = 0; i < 18; ++i) step();
  std::vector<int32_t> known = seq(a).token_ids.get();
  scheduler().finish(a);
  auto next = std::make_unique<Sequence>();
  next->id = next->arrival = ++last_id_;
  next->sampling = spec({});
  next->num_prompt_tokens = static_cast<int>(known.size());
  next->max_total_tokens = next->num_prompt_tokens + 1;
  next->token_ids = std::move(known);
  ASSERT_TRUE(scheduler().add(std::move(next)).ok());
  schedule();
  EXPECT_EQ(seq(last_id_).num_cached_tokens, 32);
}

TEST_F(SchedulerTest, APlanSharesThePromptOfANewSequence) {
  const auto prompt = std::make_shared<const std::vector<int32_t>>(20, 7);
  auto added = std::make_unique<Sequence>();
  added->id = 1;
  added->sampling = spec({});
  added->num_prompt_tokens = 20;
  added->max_total_tokens = 21;
  added->token_ids = prompt;
  ASSERT_TRUE(scheduler().add(std::move(added)).ok());
  const BatchPlan plan = schedule();
  ASSERT_EQ(plan.slots_added.size(), 1U);
  EXPECT_EQ(&plan.slots_added[0].token_ids.get(), prompt.get()) << "the plan copies the prompt";
}

TEST_F(SchedulerTest, BlocksOfUnknownTokensAreNotNamed) {
  const SeqId a = add(16, 40);
  std::vector<BatchPlan> plans;
  for (int i = 0; i < 17; ++i) plans.push_back(schedule());  // fills 2 blocks, no output known
  EXPECT_EQ(seq(a).num_scheduled, 32);
  for (const BatchPlan& plan : plans) complete(plan);
  scheduler().check_invariants();
}

TEST_F(SchedulerTest, SaltsAndPromptLogprobsDoNotShare) {
  add(48, 9, {.first_id = 1});
  step();
  const SeqId salted = add(48, 9, {.salt = "s", .first_id = 1});
  step();
  EXPECT_EQ(seq(salted).num_cached_tokens, 0);
  const SeqId logprobs = add(48, 9, {.prompt_logprobs = 2, .first_id = 1});
  const BatchPlan plan = step();
  EXPECT_EQ(seq(logprobs).num_cached_tokens, 0);
  EXPECT_EQ(plan.spans.back().num_prompt_logprobs, 2);
  EXPECT_EQ(step().spans.back().num_prompt_logprobs, -1);
}

TEST_F(SchedulerTest, CachingCanBeTurnedOff) {
  config_.enable_prefix_caching = false;
  add(48, 9, {.first_id = 1});
  step();
  const SeqId same = add(48, 9, {.first_id = 1});
  step();
  EXPECT_EQ(seq(same).num_cached_tokens, 0);
  EXPECT_EQ(scheduler().stats().prefix_cache_queries, 0);
}

TEST_F(SchedulerTest, EvictsTheDeepEndOfAChainFirst) {
  config_.tables = {{.num_blocks = 5}};
  scheduler().finish((add(64, 1, {.first_id = 1}), step(), last_id_));
  // One block is needed, so the last of the chain's 4 cached blocks is evicted.
  scheduler().finish((add(10, 1), step(), last_id_));
  const SeqId again = add(64, 1, {.first_id = 1});
  step();
  EXPECT_EQ(seq(again).num_cached_tokens, 48);
}

}  // namespace
}  // namespace quire
