// Preemption when blocks, slots or rule tables run out.

#include "sched/scheduler_fixture.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(SchedulerTest, PreemptsTheLastInRankWhenBlocksRunOut) {
  config_.tables = {{.num_blocks = 5}};  // for 64 tokens
  const SeqId a = add(30, 20);
  const SeqId b = add(30, 20);
  step();
  step();
  const BatchPlan third = step();  // both hold 2 blocks, full after this step
  EXPECT_THAT(third.spans, SizeIs(2));
  const BatchPlan fourth = step();
  EXPECT_EQ(parts(fourth), (Parts{{a, 1}}));
  EXPECT_THAT(fourth.slots_removed, ElementsAre(1));
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
  EXPECT_EQ(seq(b).num_preemptions, 1);
  EXPECT_EQ(seq(b).num_output_tokens(), 3);
  EXPECT_EQ(scheduler().stats().num_preemptions, 1);
  while (seq(a).num_output_tokens() < 20) step();
  EXPECT_EQ(seq(b).state, SeqState::kWaiting) << "its 3 blocks are not available";
  scheduler().finish(a);
  const BatchPlan back = step();
  ASSERT_THAT(back.slots_added, SizeIs(1));
  EXPECT_EQ(back.slots_added[0].token_ids.size(), 33U) << "prompt and output";
  EXPECT_EQ(back.slots_added[0].num_prompt_tokens, 30);
  EXPECT_EQ(seq(b).num_cached_tokens, 0) << "counted at the first start";
}

TEST_F(SchedulerTest, APreemptedSequenceWaitsForItsTokensInFlight) {
  config_.tables = {{.num_blocks = 5}};
  const SeqId a = add(31, 20);
  const SeqId b = add(31, 20);
  const SeqId c = add(2, 20);
  std::vector<BatchPlan> plans = {schedule(), schedule(), schedule()};
  EXPECT_EQ(parts(plans[2]), (Parts{{a, 1}}));
  EXPECT_EQ(seq(b).num_in_flight, 2);
  scheduler().finish(a);
  EXPECT_TRUE(schedule().empty()) << "b must not resume yet, and c must not overtake it";
  for (const BatchPlan& plan : plans) complete(plan);
  EXPECT_EQ(seq(b).num_output_tokens(), 2);
  EXPECT_EQ(parts(schedule()), (Parts{{b, 17}, {c, 2}})) << "its first block is still cached";
}

TEST_F(SchedulerTest, PriorityPreemptsWhenBlocksRunOut) {
  config_.tables = {{.num_blocks = 5}};
  const SeqId a = add(30, 20);
  const SeqId b = add(30, 20);
  step();
  const SeqId urgent = add(20, 20, {.priority = -1});
  const BatchPlan plan = step();
  EXPECT_EQ(parts(plan), (Parts{{a, 1}, {urgent, 20}}));
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, NoSequenceIsPreemptedInVain) {
  config_.tables = {{.num_blocks = 6}};
  const SeqId top = add(40, 20, {.priority = -2});
  const SeqId low = add(20, 12);
  step();
  const SeqId urgent = add(60, 4, {.priority = -1});  // needs 4 blocks; preempting `low` gives 2
  EXPECT_EQ(parts(step()), (Parts{{top, 1}, {low, 1}}));
  EXPECT_EQ(seq(low).num_preemptions, 0);
  EXPECT_EQ(seq(urgent).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, PriorityPreemptsWhenSlotsRunOut) {
  config_.max_num_seqs = 2;
  const SeqId a = add(20, 100, {.priority = 10});
  const SeqId b = add(20, 100, {.priority = 10});
  step();
  const SeqId urgent = add(20, 1, {.priority = -5});
  const BatchPlan plan = step();
  EXPECT_EQ(parts(plan), (Parts{{a, 1}, {urgent, 20}}));
  EXPECT_THAT(plan.slots_removed, ElementsAre(1));
  ASSERT_THAT(plan.slots_added, SizeIs(1));
  EXPECT_EQ(plan.slots_added[0].slot, 1) << "the freed slot serves in the same step";
  EXPECT_EQ(seq(b).num_preemptions, 1);
  scheduler().finish(urgent);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 5}})) << "b's first block is still cached";
  EXPECT_EQ(scheduler().stats().num_preemptions, 1) << "and a and b do not preempt each other";
}

TEST_F(SchedulerTest, ASlotIsNotTakenFromAnEqualOrAHigherPriority) {
  config_.max_num_seqs = 2;
  const SeqId a = add(20, 100, {.priority = -1});
  const SeqId b = add(20, 100);
  step();
  add(20, 1);
  add(20, 1, {.priority = 1});
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 1}}));
  EXPECT_EQ(scheduler().stats().num_preemptions, 0);
}

TEST_F(SchedulerTest, ASlotIsNotTakenWhereBlocksWouldStillBeMissing) {
  config_.max_num_seqs = 2;
  config_.tables = {{.num_blocks = 6}};
  const SeqId top = add(40, 20, {.priority = -2});
  const SeqId low = add(20, 12);
  step();
  add(60, 4, {.priority = -1});  // needs 4 blocks; preempting `low` gives 2
  EXPECT_EQ(parts(step()), (Parts{{top, 1}, {low, 1}}));
  EXPECT_EQ(scheduler().stats().num_preemptions, 0);
}

TEST_F(SchedulerTest, PriorityPreemptsWhereDecodesTakeTheWholeBudget) {
  config_.max_num_seqs = config_.max_num_batched_tokens = 2;
  const SeqId a = add(2, 100);
  const SeqId b = add(2, 100);
  step();
  step();
  ASSERT_EQ(parts(step()), (Parts{{a, 1}, {b, 1}}));
  const SeqId urgent = add(3, 10, {.priority = -1});
  EXPECT_EQ(parts(step()), (Parts{{urgent, 1}, {a, 1}}));
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, SeveralUrgentSequencesTakeTheSlotsOfTheLastInRank) {
  config_.max_num_seqs = 3;
  const SeqId a = add(8, 100, {.priority = 5});
  const SeqId b = add(8, 100, {.priority = 7});
  const SeqId c = add(8, 100, {.priority = 6});
  step();
  const SeqId x = add(8, 100);
  const SeqId y = add(8, 100);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {x, 8}, {y, 8}}));
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
  EXPECT_EQ(seq(c).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, ARunningPromptLosesItsSlotBeforeItsNextChunk) {
  config_.max_num_seqs = 2;
  const SeqId a = add(8, 100);
  const SeqId prompt = add(200, 10);
  ASSERT_EQ(parts(step()), (Parts{{a, 8}, {prompt, 56}}));
  const SeqId urgent = add(20, 10, {.priority = -1});
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {urgent, 20}}));
  EXPECT_EQ(seq(prompt).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, AConstrainedSequenceIsPreemptedWhileItsTokenIsInFlight) {
  config_.max_num_seqs = 1;
  const SeqId a = add(20, 10);
  seq(a).is_constrained = true;
  const BatchPlan first = schedule();
  const SeqId urgent = add(20, 1, {.priority = -1});
  const BatchPlan second = schedule();
  EXPECT_EQ(parts(second), (Parts{{urgent, 20}}));
  EXPECT_EQ(seq(a).num_in_flight, 1);
  complete(first);
  complete(second);
  EXPECT_EQ(seq(a).num_output_tokens(), 1) << "the token in flight still belongs to it";
  scheduler().finish(urgent);
  EXPECT_EQ(parts(step()), (Parts{{a, 5}}));
}

TEST_F(SchedulerTest, AnUncutPromptBorrowsTheTokensOfDecodesThatRankAfterIt) {
  config_.enable_chunked_prefill = false;
  const SeqId a = add(16, 100);
  const SeqId b = add(16, 100, {.priority = 1});
  step();
  const SeqId urgent = add(63, 10, {.priority = -1});
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {urgent, 63}})) << "b skips one step";
  EXPECT_EQ(scheduler().stats().num_preemptions, 0);
  EXPECT_EQ(parts(step()), (Parts{{urgent, 1}, {a, 1}, {b, 1}}));
}

TEST_F(SchedulerTest, BlocksThatOnlyVictimsShareCountAsFreed) {
  config_.tables = {{.num_blocks = 6}};
  const SeqId a = add(33, 10, {.first_id = 5});  // blocks 1 and 2 are shared, 3 is its own
  const SeqId b = add(33, 10, {.first_id = 5});
  step();
  ASSERT_EQ(scheduler().stats().num_free_blocks, 1);
  const SchedulerStats stats = scheduler().stats();
  EXPECT_DOUBLE_EQ(stats.kv_cache_usage, 1 - 1.0 / stats.num_total_blocks);
  const SeqId urgent = add(79, 1, {.priority = -1});  // needs all 5
  EXPECT_EQ(parts(step()), (Parts{{urgent, 64}}));
  EXPECT_EQ(seq(a).state, SeqState::kWaiting);
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, SequencesWithRulesWaitForARuleTable) {
  config_.max_num_rule_seqs = 1;
  const SeqId a = add(4, 10, {.has_rules = true});
  const SeqId b = add(4, 10, {.has_rules = true});
  const SeqId c = add(4, 10);
  EXPECT_EQ(parts(step()), (Parts{{a, 4}, {c, 4}})) << "c needs no table";
  scheduler().finish(a);
  EXPECT_EQ(parts(step()), (Parts{{c, 1}, {b, 4}}));
}

TEST_F(SchedulerTest, PriorityPreemptsForARuleTable) {
  config_.max_num_rule_seqs = 1;
  const SeqId a = add(4, 10);
  const SeqId b = add(4, 10, {.priority = 1, .has_rules = true});
  const SeqId c = add(4, 10, {.priority = 2});
  step();
  const SeqId urgent = add(4, 10, {.priority = -1, .has_rules = true});
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {c, 1}, {urgent, 4}})) << "c holds no table";
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
  EXPECT_EQ(scheduler().stats().num_preemptions, 1);
  const SeqId late = add(4, 10, {.has_rules = true});
  EXPECT_EQ(parts(step()), (Parts{{urgent, 1}, {a, 1}, {c, 1}}))
      << "`late` does not rank before it";
  scheduler().finish(urgent);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {c, 1}, {late, 4}}));
}

TEST_F(SchedulerTest, TwoBigSequencesTakeTurnsInOrder) {
  config_.tables = {{.num_blocks = 9}};  // for 128 tokens: in the end only one sequence fits
  const SeqId a = add(60, 64);
  add(60, 64);
  int num_steps = 0;
  for (; scheduler().has_work() && num_steps < 1000; ++num_steps) {
    const BatchPlan plan = schedule();
    ASSERT_FALSE(plan.empty());
    for (Sequence* done : complete(plan)) {
      if (static_cast<int>(done->token_ids.size()) < done->max_total_tokens) continue;
      EXPECT_LE(done->num_preemptions, done->id == a ? 0 : 3);
      scheduler().finish(done->id);
    }
  }
  EXPECT_LT(num_steps, 200);
}

}  // namespace
}  // namespace quire
