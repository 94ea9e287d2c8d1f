// The scheduler's rules, one by one. property_test.cc checks plans under combinations of them.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sched/scheduler_fixture.h"

namespace quire {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(SchedulerTest, APlanHasAllThatTheDeviceNeedsOfANewSequence) {
  const SeqId id = add(20, 5);
  const BatchPlan plan = schedule();
  ASSERT_THAT(plan.slots_added, SizeIs(1));
  EXPECT_EQ(plan.slots_added[0].slot, 0);
  EXPECT_EQ(plan.slots_added[0].seq_id, id);
  EXPECT_EQ(plan.slots_added[0].token_ids.get(), seq(id).token_ids.get());
  EXPECT_EQ(plan.slots_added[0].num_prompt_tokens, 20);
  EXPECT_EQ(plan.slots_added[0].sampling, seq(id).sampling);
  ASSERT_THAT(plan.block_appends, SizeIs(1));
  EXPECT_EQ(plan.block_appends[0].first, 0);
  EXPECT_THAT(plan.block_appends[0].block_ids, ElementsAre(1, 2));
  ASSERT_THAT(plan.spans, SizeIs(1));
  EXPECT_EQ(plan.spans[0].num_computed, 0);
  EXPECT_TRUE(plan.spans[0].samples);
  EXPECT_EQ(plan.spans[0].num_prompt_logprobs, -1);
  EXPECT_EQ(plan.num_decode, 0);
  EXPECT_EQ(plan.token_ids, seq(id).token_ids.get());
}

TEST_F(SchedulerTest, DecodesContinueWhileTheirTokensAreInFlight) {
  const SeqId id = add(15, 5);
  const BatchPlan first = schedule();
  const BatchPlan second = schedule();
  EXPECT_THAT(second.token_ids, ElementsAre(kPlaceholderToken));
  EXPECT_EQ(second.spans[0].num_computed, 15);
  EXPECT_THAT(second.block_appends, IsEmpty());
  EXPECT_EQ(seq(id).num_in_flight, 2);
  const BatchPlan third = schedule();
  ASSERT_THAT(third.block_appends, SizeIs(1));
  EXPECT_EQ(third.block_appends[0].first, 1);
  EXPECT_THAT(complete(first), ElementsAre(&seq(id)));
  EXPECT_EQ(seq(id).num_output_tokens(), 1);
  complete(second);
  complete(third);
  EXPECT_EQ(seq(id).num_in_flight, 0);
  EXPECT_THAT(schedule().token_ids, ElementsAre(kPlaceholderToken)) << "the device's own token";
}

TEST_F(SchedulerTest, NeverPlansBeyondTheLastToken) {
  const SeqId id = add(10, 3);
  const BatchPlan plans[] = {schedule(), schedule(), schedule()};
  EXPECT_TRUE(schedule().empty());
  for (const BatchPlan& plan : plans) complete(plan);
  EXPECT_EQ(seq(id).num_output_tokens(), 3);
  EXPECT_EQ(seq(id).num_scheduled, 12) << "the last token is never fed";
  scheduler().finish(id);
  EXPECT_FALSE(scheduler().has_work());
}

TEST_F(SchedulerTest, CutsPromptsToTheBudgetAndDecodesFirst) {
  const SeqId a = add(10, 50);
  step();
  const SeqId b = add(100, 5);
  const SeqId c = add(30, 5);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 63}}));
  const BatchPlan plan = step();
  EXPECT_EQ(parts(plan), (Parts{{a, 1}, {b, 37}, {c, 26}}));
  EXPECT_EQ(plan.num_decode, 1);
  EXPECT_EQ(plan.spans[1].first_token, 1);
  EXPECT_TRUE(plan.spans[1].samples);
  EXPECT_FALSE(plan.spans[2].samples);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 1}, {c, 4}}));
}

TEST_F(SchedulerTest, ALongPromptLeavesRoomForOthers) {
  config_.long_prefill_token_threshold = 40;
  const SeqId a = add(100, 5);
  const SeqId b = add(30, 5);
  EXPECT_EQ(parts(step()), (Parts{{a, 40}, {b, 24}}));
  EXPECT_EQ(parts(step()), (Parts{{a, 40}, {b, 6}}));
  EXPECT_EQ(parts(step()), (Parts{{b, 1}, {a, 20}}));
}

TEST_F(SchedulerTest, AOneTokenChunkIsAShortQuery) {
  add(65, 5);
  step();
  const BatchPlan plan = step();
  EXPECT_EQ(plan.num_decode, 1);
  EXPECT_EQ(plan.spans[0].num_computed, 64);
  EXPECT_TRUE(plan.spans[0].samples);
}

TEST_F(SchedulerTest, WithChunkingOffPromptsAreTakenWholeAndInOrder) {
  config_.enable_chunked_prefill = false;
  const SeqId a = add(40, 5);
  const SeqId b = add(30, 5);
  add(5, 5);  // would fit beside `a`, but must not overtake `b`
  EXPECT_EQ(parts(step()), (Parts{{a, 40}}));
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 30}, {3, 5}}));
  EXPECT_THAT(try_add(65, 5).message(), HasSubstr("`max_num_batched_tokens` 64"));
}

TEST_F(SchedulerTest, AdmitsByPriorityThenArrival) {
  config_.max_num_seqs = 1;
  const SeqId a = add(5, 1);
  const SeqId b = add(5, 1);
  const SeqId urgent = add(5, 1, {.priority = -1});
  for (const SeqId expected : {urgent, a, b}) {
    EXPECT_EQ(parts(step()), (Parts{{expected, 5}}));
    scheduler().finish(expected);
  }
}

TEST_F(SchedulerTest, APromptOfHigherPriorityOvertakesOneThatIsBeingComputed) {
  const SeqId slow = add(200, 5);
  EXPECT_EQ(parts(step()), (Parts{{slow, 64}}));
  const SeqId urgent = add(10, 5, {.priority = -1});
  EXPECT_EQ(parts(step()), (Parts{{urgent, 10}, {slow, 54}}));
}

TEST_F(SchedulerTest, SlotsAreReusedAfterAPlanRemovesThem) {
  config_.max_num_seqs = 2;
  const SeqId a = add(5, 9);
  add(5, 9);
  const SeqId c = add(5, 9);
  EXPECT_THAT(step().slots_added, SizeIs(2));
  EXPECT_EQ(scheduler().stats().num_waiting, 1);
  scheduler().finish(a);
  const BatchPlan plan = step();
  EXPECT_THAT(plan.slots_removed, ElementsAre(0));
  ASSERT_THAT(plan.slots_added, SizeIs(1));
  EXPECT_EQ(plan.slots_added[0].slot, 0);
  EXPECT_EQ(plan.slots_added[0].seq_id, c);
}

TEST_F(SchedulerTest, RemovedSlotsWaitForAPlanThatIsRun) {
  scheduler().finish(add(5, 9));
  const SeqId a = add(5, 9);
  step();
  scheduler().finish(a);
  const BatchPlan none = schedule();
  EXPECT_TRUE(none.empty());
  EXPECT_THAT(none.slots_removed, IsEmpty());
  add(5, 9);
  EXPECT_THAT(schedule().slots_removed, ElementsAre(0));
}

TEST_F(SchedulerTest, CancellingFreesEverythingAtOnce) {
  const SeqId running = add(100, 9);
  const SeqId waiting = add(100, 9);
  const BatchPlan first = schedule();
  scheduler().finish(waiting);
  scheduler().finish(running);
  scheduler().finish(running);
  scheduler().finish(99);
  scheduler().check_invariants();
  EXPECT_EQ(scheduler().stats().num_free_blocks, 64);
  EXPECT_FALSE(scheduler().has_work());
  complete(first);
}

TEST_F(SchedulerTest, TokensOfFinishedSequencesAreDropped) {
  const SeqId a = add(5, 9);
  const SeqId b = add(5, 9);
  const BatchPlan plan = schedule();
  scheduler().finish(a);
  EXPECT_THAT(complete(plan), ElementsAre(nullptr, &seq(b)));
}

TEST_F(SchedulerTest, AFinishedSequenceStaysReadableUntilTheNextCall) {
  const SeqId a = add(5, 1);
  const BatchPlan plan = schedule();
  Sequence* finished = complete(plan)[0];
  scheduler().finish(a);
  EXPECT_EQ(finished->state, SeqState::kFinished);
  EXPECT_EQ(finished->num_output_tokens(), 1);
  EXPECT_EQ(scheduler().find(a), nullptr);
}

TEST_F(SchedulerTest, AnErrorBringsNoToken) {
  const SeqId a = add(5, 9);
  const BatchPlan plan = schedule();
  SpanResult failed;
  failed.seq_id = a;
  failed.error = internal_error("[sample] NaN");
  const auto progress = scheduler().complete(plan, {{failed}});
  ASSERT_THAT(progress, SizeIs(1));
  EXPECT_EQ(progress[0].seq, &seq(a));
  EXPECT_EQ(progress[0].num_tokens, 0);
  EXPECT_EQ(seq(a).num_output_tokens(), 0);
  EXPECT_EQ(seq(a).num_in_flight, 0);
}

// A block holds 14 known tokens of 16, and a step adds up to 5.
TEST_F(SchedulerTest, BlocksForDraftsThatWereNotAcceptedAreGivenBack) {
  config_.num_drafts = 4;
  const SeqId id = add(14, 50);
  step();
  const BatchPlan first = schedule();
  const BatchPlan second = schedule();
  EXPECT_EQ(first.spans[0].num_computed, 14);
  EXPECT_EQ(first.spans[0].num_tokens, 5);
  EXPECT_EQ(first.spans[0].num_drafts, 4);
  EXPECT_THAT(first.token_ids, Each(kPlaceholderToken));
  EXPECT_EQ(second.spans[0].num_computed, 19) << "an upper bound";
  EXPECT_EQ(seq(id).num_in_flight, 2) << "it counts steps, not tokens";
  EXPECT_THAT(seq(id).tables[0].ids, SizeIs(2));
  complete(first, 0);
  EXPECT_EQ(seq(id).num_output_tokens(), 2);
  EXPECT_EQ(seq(id).num_scheduled, 20);
  complete(second, 0);
  EXPECT_EQ(seq(id).num_scheduled, 16) << "exact, because nothing is in flight";
  EXPECT_THAT(seq(id).tables[0].ids, SizeIs(1)) << "the second block holds no token";
  const BatchPlan third = schedule();
  ASSERT_THAT(third.block_appends, SizeIs(1));
  EXPECT_EQ(third.block_appends[0].first, 1) << "its entry is sent again";
  complete(third, 4);
  EXPECT_EQ(seq(id).num_output_tokens(), 8);
  EXPECT_EQ(seq(id).num_scheduled, 21);
}

TEST_F(SchedulerTest, ASpanEndsWhereTheSequenceMust) {
  config_.num_drafts = 4;
  const SeqId id = add(30, 3);
  step();
  const BatchPlan plan = schedule();
  EXPECT_EQ(plan.spans[0].num_blocks, 2) << "drafts after the last token have no KV slot";
  const BatchPlan next = schedule();
  complete(plan, 4);
  EXPECT_EQ(seq(id).num_output_tokens(), 3);
  complete(next, 4);
  EXPECT_EQ(seq(id).num_output_tokens(), 3);
  EXPECT_TRUE(schedule().empty());
}

TEST_F(SchedulerTest, ConstrainedSequencesVerifyTheDraftsThatTheHostHasSeen) {
  config_.num_drafts = 4;
  const SeqId a = add(10, 60);
  const SeqId b = add(10, 60);
  seq(a).is_constrained = true;
  step();
  const BatchPlan without = schedule();
  EXPECT_EQ(parts(without), (Parts{{a, 5}, {b, 5}})) << "the batch is uniform";
  EXPECT_EQ(without.spans[0].num_drafts, 0);
  EXPECT_EQ(without.spans[1].num_drafts, 4);
  EXPECT_THAT(without.token_ids, Each(kPlaceholderToken));

  next_drafts_ = {7, 8};
  complete(without);
  const BatchPlan with = schedule();
  EXPECT_EQ(with.spans[0].num_drafts, 2);
  constexpr int32_t kUnknown = kPlaceholderToken;
  EXPECT_THAT(std::span(with.token_ids).first(5), ElementsAre(kUnknown, 7, 8, kUnknown, kUnknown));
  EXPECT_EQ(parts(schedule()), (Parts{{b, 5}})) << "a's next drafts are not known";

  next_drafts_ = {};
  complete(with, 2);
  EXPECT_EQ(seq(a).num_output_tokens(), 1 + 1 + 3);
  EXPECT_EQ(schedule().spans[0].num_drafts, 0);
}

TEST_F(SchedulerTest, APreemptionDropsTheDraftsOfAConstrainedSequence) {
  config_.num_drafts = 4;
  config_.max_num_seqs = 1;
  const SeqId a = add(20, 30);
  seq(a).is_constrained = true;
  next_drafts_ = {7, 8};
  step();
  const SeqId urgent = add(20, 1, {.priority = -1});
  ASSERT_EQ(parts(step()), (Parts{{urgent, 20}}));
  scheduler().finish(urgent);
  next_drafts_ = {9};
  const BatchPlan again = step();
  EXPECT_FALSE(again.spans[0].decodes);
  EXPECT_EQ(again.spans[0].num_drafts, 0);
  const BatchPlan plan = schedule();
  EXPECT_EQ(plan.spans[0].num_drafts, 1);
  EXPECT_EQ(plan.token_ids[1], 9);
}

TEST_F(SchedulerTest, FewerDraftsAreVerifiedWhileManySequencesDecode) {
  config_.num_drafts = 4;
  config_.draft_ranges = {{.first = 2, .last = 2, .num_drafts = 1},
                          {.first = 3, .last = 8, .num_drafts = 0}};
  std::vector<int> lengths;
  for (int i = 0; i < 4; ++i) {
    add(10, 60);
    step();
    const BatchPlan plan = schedule();
    EXPECT_EQ(plan.num_decode, i + 1);
    EXPECT_EQ(plan.spans[0].num_drafts, plan.decode_q_len - 1);
    lengths.push_back(plan.decode_q_len);
    complete(plan, 4);
  }
  EXPECT_THAT(lengths, ElementsAre(5, 2, 1, 1));
}

// On a GPU, the runner chooses the number of drafts per step while other steps are in flight.
TEST_F(SchedulerTest, EachStepMayVerifyAnotherNumberOfDrafts) {
  config_.num_drafts = 4;
  config_.draft_ranges = {{.first = 1, .last = 1, .num_drafts = 3}};
  const SeqId a = add(10, 60);
  EXPECT_EQ(scheduler().num_decoding(), 0);
  const BatchPlan prompt = schedule();
  EXPECT_EQ(prompt.max_next_drafts, 3);
  EXPECT_EQ(scheduler().num_decoding(), 1);
  const BatchPlan two = schedule(2);
  const BatchPlan none = schedule(0);
  const BatchPlan most = schedule(4);
  EXPECT_EQ(parts(two), (Parts{{a, 3}}));
  EXPECT_EQ(parts(none), (Parts{{a, 1}}));
  EXPECT_EQ(parts(most), (Parts{{a, 4}})) << "as many as the range allows";
  EXPECT_EQ(none.max_next_drafts, 3) << "whatever this step verifies";
  EXPECT_EQ(none.spans[0].num_computed, 10 + 3) << "an upper bound";
  EXPECT_EQ(most.spans[0].num_computed, 10 + 3 + 1);
  complete(prompt);
  complete(two, 1);
  complete(none);
  complete(most, 3);
  EXPECT_EQ(seq(a).num_output_tokens(), 1 + 2 + 1 + 4);
  EXPECT_EQ(schedule().spans[0].num_computed, 10 + 2 + 1 + 4);
}

TEST_F(SchedulerTest, NoSequenceOvertakesALargeOneThatWaits) {
  config_.tables = {{.num_blocks = 9}};
  config_.max_num_batched_tokens = 128;
  const SeqId a = add(50, 8);
  step();
  const SeqId big = add(100, 8);
  add(5, 8);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}}));
  scheduler().finish(a);
  EXPECT_EQ(parts(step()), (Parts{{big, 100}, {3, 5}}));
}

TEST_F(SchedulerTest, ABudgetBelowTheNumberOfSlotsStillServesAll) {
  config_.max_num_batched_tokens = 2;
  for (int i = 0; i < 4; ++i) add(3, 3);
  int num_steps = 0;
  while (scheduler().has_work() && ++num_steps < 100) {
    for (Sequence* done : complete(schedule())) {
      if (done->num_output_tokens() == 3) scheduler().finish(done->id);
    }
  }
  EXPECT_FALSE(scheduler().has_work());
}

TEST_F(SchedulerTest, IdsInUseAreRefused) {
  add(5, 5);
  --last_id_;
  EXPECT_THAT(try_add(5, 5).message(), HasSubstr("id 1 is already in use"));
}

TEST_F(SchedulerTest, StepsAreCompletedInOrder) {
  add(5, 5);
  const BatchPlan first = schedule();
  const BatchPlan second = schedule();
  complete(second);
  EXPECT_DEATH(complete(first), "in the order of their planning");
}

// The CPU time of the scheduler per step. It takes 8 us; the bound leaves room for noisy machines.
TEST_F(SchedulerTest, ADecodeStepOf256CostsTheHostLittle) {
  constexpr int kNumSeqs = 256;
  config_.max_num_seqs = kNumSeqs;
  config_.max_num_batched_tokens = kNumSeqs * 64;
  config_.max_model_len = 2048;
  config_.tables = {{.num_blocks = kNumSeqs * 64}};
  for (int i = 0; i < kNumSeqs; ++i) add(60, 600);
  complete(schedule());
  BatchPlan in_flight = schedule();
  std::vector<double> schedule_us, complete_us;
  for (int i = 0; i < 400; ++i) {
    const auto start = std::chrono::steady_clock::now();
    BatchPlan plan = scheduler().schedule();
    const auto planned = std::chrono::steady_clock::now();
    std::vector<SpanResult> spans(kNumSeqs);
    for (size_t k = 0; k < kNumSeqs; ++k) {
      spans[k].seq_id = in_flight.spans[k].seq_id;
      spans[k].tokens.push_back({.token_id = static_cast<int32_t>(k), .logprobs = {}});
    }
    const auto back = std::chrono::steady_clock::now();
    scheduler().complete(in_flight, spans);
    const auto end = std::chrono::steady_clock::now();
    in_flight = std::move(plan);
    schedule_us.push_back(std::chrono::duration<double, std::micro>(planned - start).count());
    complete_us.push_back(std::chrono::duration<double, std::micro>(end - back).count());
  }
  std::ranges::sort(schedule_us);
  std::ranges::sort(complete_us);
  std::printf("256 decodes, medians: schedule %.1f us, complete %.1f us\n", schedule_us[200],
              complete_us[200]);
  EXPECT_LT(schedule_us[200] + complete_us[200], 1000);
}

TEST(SchedulerDeathTest, ABadConfigIsABrokenInvariant) {
  EXPECT_DEATH(Scheduler(SchedulerConfig{}), "block tables: must be at least 1, got 0");
}

}  // namespace
}  // namespace quire
