// The scheduler's rules, one by one. That plans are right in every combination of them is the
// business of property_test.cc.
#include "sched/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

namespace quire {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Options {
  int priority = 0;
  std::string salt = {};
  std::optional<int> prompt_logprobs = {};
  int first_id = 1000;  // prompts of different sequences share nothing unless told to
};

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() {
    config_.max_num_seqs = 4;
    config_.max_num_batched_tokens = 64;
    config_.max_model_len = 256;
    config_.num_blocks = 65;
  }

  Scheduler& scheduler() {
    if (!scheduler_) scheduler_ = std::make_unique<Scheduler>(config_);
    return *scheduler_;
  }

  static std::shared_ptr<const SamplingSpec> spec(const Options& options) {
    SamplingParams params;
    params.prompt_logprobs = options.prompt_logprobs;
    SamplingSpec resolved;
    resolved.params = std::make_shared<const SamplingParams>(params);
    return std::make_shared<const SamplingSpec>(resolved);
  }

  // Ids count up from 1 in order of arrival.
  Status try_add(int num_prompt, int max_tokens, const Options& options = {}) {
    auto seq = std::make_unique<Sequence>();
    seq->id = seq->arrival = ++last_id_;
    seq->priority = options.priority;
    seq->cache_salt = options.salt;
    seq->sampling = spec(options);
    seq->token_ids.resize(static_cast<size_t>(num_prompt));
    const int first =
        options.first_id == 1000 ? static_cast<int>(1000 * last_id_) : options.first_id;
    std::iota(seq->token_ids.begin(), seq->token_ids.end(), first);
    seq->num_prompt_tokens = num_prompt;
    seq->max_total_tokens = num_prompt + max_tokens;
    return scheduler().add(std::move(seq));
  }
  SeqId add(int num_prompt, int max_tokens, const Options& options = {}) {
    const Status status = try_add(num_prompt, max_tokens, options);
    EXPECT_TRUE(status.ok()) << status.message();
    return last_id_;
  }

  BatchPlan schedule() {
    BatchPlan plan = scheduler().schedule();
    scheduler().check_invariants();
    return plan;
  }
  // Every sampling slice brings a token that was never seen before.
  std::vector<Sequence*> complete(const BatchPlan& plan) {
    std::vector<SampledToken> sampled;
    for (const SeqSlice& slice : plan.slices) {
      if (!slice.samples) continue;
      sampled.emplace_back();
      sampled.back().seq_id = slice.seq_id;
      sampled.back().token_id = ++last_token_;
    }
    auto seqs = scheduler().complete(plan, sampled);
    scheduler().check_invariants();
    return seqs;
  }
  BatchPlan step() {
    BatchPlan plan = schedule();
    complete(plan);
    return plan;
  }

  Sequence& seq(SeqId id) { return *scheduler().find(id); }
  static std::vector<std::pair<SeqId, int>> parts(const BatchPlan& plan) {
    std::vector<std::pair<SeqId, int>> all;
    for (const SeqSlice& slice : plan.slices) all.emplace_back(slice.seq_id, slice.num_tokens);
    return all;
  }

  SchedulerConfig config_;
  std::unique_ptr<Scheduler> scheduler_;
  SeqId last_id_ = 0;
  int32_t last_token_ = 1000000;
};

using Parts = std::vector<std::pair<SeqId, int>>;

TEST_F(SchedulerTest, TellsTheDeviceAllItNeedsOfANewSequence) {
  const SeqId id = add(20, 5);
  const BatchPlan plan = schedule();
  ASSERT_THAT(plan.rows_added, SizeIs(1));
  EXPECT_EQ(plan.rows_added[0].row, 0);
  EXPECT_EQ(plan.rows_added[0].seq_id, id);
  EXPECT_EQ(plan.rows_added[0].token_ids, seq(id).token_ids);
  EXPECT_EQ(plan.rows_added[0].num_prompt_tokens, 20);
  EXPECT_EQ(plan.rows_added[0].sampling, seq(id).sampling);
  ASSERT_THAT(plan.block_appends, SizeIs(1));
  EXPECT_EQ(plan.block_appends[0].first, 0);
  EXPECT_THAT(plan.block_appends[0].block_ids, ElementsAre(1, 2));
  ASSERT_THAT(plan.slices, SizeIs(1));
  EXPECT_EQ(plan.slices[0].num_computed, 0);
  EXPECT_TRUE(plan.slices[0].samples);
  EXPECT_EQ(plan.slices[0].num_prompt_logprobs, -1);
  EXPECT_EQ(plan.num_decode, 0);
  EXPECT_EQ(plan.token_ids, seq(id).token_ids);
}

TEST_F(SchedulerTest, DecodesGoOnWhileTheirTokensAreInFlight) {
  const SeqId id = add(15, 5);
  const BatchPlan first = schedule();
  const BatchPlan second = schedule();
  EXPECT_THAT(second.token_ids, ElementsAre(kPlaceholderToken));
  EXPECT_EQ(second.slices[0].num_computed, 15);
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
  EXPECT_THAT(schedule().token_ids, ElementsAre(last_token_)) << "known: no placeholder needed";
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
  EXPECT_EQ(plan.slices[1].first_token, 1);
  EXPECT_TRUE(plan.slices[1].samples);
  EXPECT_FALSE(plan.slices[2].samples);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 1}, {c, 4}}));
}

TEST_F(SchedulerTest, AOneTokenChunkIsAShortQuery) {
  add(65, 5);
  step();
  const BatchPlan plan = step();
  EXPECT_EQ(plan.num_decode, 1);
  EXPECT_EQ(plan.slices[0].num_computed, 64);
  EXPECT_TRUE(plan.slices[0].samples);
}

TEST_F(SchedulerTest, WithChunkingOffPromptsAreTakenWholeAndInOrder) {
  config_.enable_chunked_prefill = false;
  const SeqId a = add(40, 5);
  const SeqId b = add(30, 5);
  add(5, 5);  // would fit beside a, and must not overtake b
  EXPECT_EQ(parts(step()), (Parts{{a, 40}}));
  EXPECT_EQ(parts(step()), (Parts{{a, 1}, {b, 30}, {3, 5}}));
  EXPECT_THAT(try_add(65, 5).message(), HasSubstr("--max-num-batched-tokens 64"));
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

TEST_F(SchedulerTest, RowsAreReusedAfterTheyWereAnnounced) {
  config_.max_num_seqs = 2;
  const SeqId a = add(5, 9);
  add(5, 9);
  const SeqId c = add(5, 9);
  EXPECT_THAT(step().rows_added, SizeIs(2));
  EXPECT_EQ(scheduler().stats().num_waiting, 1);
  scheduler().finish(a);
  const BatchPlan plan = step();
  EXPECT_THAT(plan.rows_removed, ElementsAre(0));
  ASSERT_THAT(plan.rows_added, SizeIs(1));
  EXPECT_EQ(plan.rows_added[0].row, 0);
  EXPECT_EQ(plan.rows_added[0].seq_id, c);
}

TEST_F(SchedulerTest, RemovedRowsWaitForAPlanThatIsRun) {
  scheduler().finish(add(5, 9));
  const SeqId a = add(5, 9);
  step();
  scheduler().finish(a);
  const BatchPlan none = schedule();
  EXPECT_TRUE(none.empty());
  EXPECT_THAT(none.rows_removed, IsEmpty());
  add(5, 9);
  EXPECT_THAT(schedule().rows_removed, ElementsAre(0));
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
  SampledToken failed;
  failed.seq_id = a;
  failed.error = internal_error("[sample] NaN");
  EXPECT_THAT(scheduler().complete(plan, {{failed}}), ElementsAre(&seq(a)));
  EXPECT_EQ(seq(a).num_output_tokens(), 0);
  EXPECT_EQ(seq(a).num_in_flight, 0);
  EXPECT_TRUE(schedule().empty()) << "it waits for finish()";
}

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
  EXPECT_EQ(seq(longer).block_ids[0], seq(a).block_ids[0]);
  EXPECT_EQ(seq(longer).block_ids[2], seq(a).block_ids[2]);
  EXPECT_NE(seq(same).block_ids[2], seq(a).block_ids[2]);
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
  std::vector<int32_t> known = seq(a).token_ids;
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

TEST_F(SchedulerTest, BlocksOfUnknownTokensAreNotNamed) {
  const SeqId a = add(16, 40);
  std::vector<BatchPlan> plans;
  for (int i = 0; i < 17; ++i) plans.push_back(schedule());  // fills 2 blocks, no token known
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
  EXPECT_EQ(plan.slices.back().num_prompt_logprobs, 2);
  EXPECT_EQ(step().slices.back().num_prompt_logprobs, -1);
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
  config_.num_blocks = 5;
  scheduler().finish((add(64, 1, {.first_id = 1}), step(), last_id_));
  // 1 block is taken, so that of the chain's 4 the deepest goes.
  scheduler().finish((add(10, 1), step(), last_id_));
  const SeqId again = add(64, 1, {.first_id = 1});
  step();
  EXPECT_EQ(seq(again).num_cached_tokens, 48);
}

TEST_F(SchedulerTest, PreemptsTheLastInRankWhenBlocksRunOut) {
  config_.num_blocks = 5;  // 64 tokens
  const SeqId a = add(30, 20);
  const SeqId b = add(30, 20);
  step();
  step();
  const BatchPlan third = step();  // both hold 2 blocks, full after this step
  EXPECT_THAT(third.slices, SizeIs(2));
  const BatchPlan fourth = step();
  EXPECT_EQ(parts(fourth), (Parts{{a, 1}}));
  EXPECT_THAT(fourth.rows_removed, ElementsAre(1));
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
  EXPECT_EQ(seq(b).num_preemptions, 1);
  EXPECT_EQ(seq(b).num_output_tokens(), 3);
  EXPECT_EQ(scheduler().stats().num_preemptions, 1);
  while (seq(a).num_output_tokens() < 20) step();
  EXPECT_EQ(seq(b).state, SeqState::kWaiting) << "its 3 blocks are not there";
  scheduler().finish(a);
  const BatchPlan back = step();
  ASSERT_THAT(back.rows_added, SizeIs(1));
  EXPECT_EQ(back.rows_added[0].token_ids.size(), 33U) << "prompt and output";
  EXPECT_EQ(back.rows_added[0].num_prompt_tokens, 30);
  EXPECT_EQ(seq(b).num_cached_tokens, 0) << "of the first admission";
}

TEST_F(SchedulerTest, APreemptedSequenceWaitsForItsTokensInFlight) {
  config_.num_blocks = 5;
  const SeqId a = add(31, 20);
  const SeqId b = add(31, 20);
  const SeqId c = add(2, 20);
  std::vector<BatchPlan> plans = {schedule(), schedule(), schedule()};
  EXPECT_EQ(parts(plans[2]), (Parts{{a, 1}}));
  EXPECT_EQ(seq(b).num_in_flight, 2);
  scheduler().finish(a);
  EXPECT_TRUE(schedule().empty()) << "b may not come back yet, and c may not overtake it";
  for (const BatchPlan& plan : plans) complete(plan);
  EXPECT_EQ(seq(b).num_output_tokens(), 2);
  EXPECT_EQ(parts(schedule()), (Parts{{b, 17}, {c, 2}})) << "its first block is still cached";
}

TEST_F(SchedulerTest, PriorityPreemptsWhenBlocksRunOut) {
  config_.num_blocks = 5;
  const SeqId a = add(30, 20);
  const SeqId b = add(30, 20);
  step();
  const SeqId urgent = add(20, 20, {.priority = -1});
  const BatchPlan plan = step();
  EXPECT_EQ(parts(plan), (Parts{{a, 1}, {urgent, 20}}));
  EXPECT_EQ(seq(b).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, NobodyIsPreemptedInVain) {
  config_.num_blocks = 6;
  const SeqId top = add(40, 20, {.priority = -2});
  const SeqId low = add(20, 12);
  step();
  const SeqId urgent = add(60, 4, {.priority = -1});  // needs 4 blocks; without `low` 2 are there
  EXPECT_EQ(parts(step()), (Parts{{top, 1}, {low, 1}}));
  EXPECT_EQ(seq(low).num_preemptions, 0);
  EXPECT_EQ(seq(urgent).state, SeqState::kWaiting);
}

TEST_F(SchedulerTest, TwoBigSequencesTakeTurnsInOrder) {
  config_.num_blocks = 9;  // 128 tokens: one of them at a time in the end
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

TEST_F(SchedulerTest, NobodyOvertakesABigOneThatWaits) {
  config_.num_blocks = 9;
  config_.max_num_batched_tokens = 128;
  const SeqId a = add(50, 8);
  step();
  const SeqId big = add(100, 8);
  add(5, 8);
  EXPECT_EQ(parts(step()), (Parts{{a, 1}}));
  scheduler().finish(a);
  EXPECT_EQ(parts(step()), (Parts{{big, 100}, {3, 5}}));
}

TEST_F(SchedulerTest, ABudgetBelowTheNumberOfRowsStillServesAll) {
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

// The host's share of a step. The bound is for noisy machines: the figure is 8 us.
TEST_F(SchedulerTest, ADecodeStepOf256CostsTheHostLittle) {
  constexpr int kNumSeqs = 256;
  config_.max_num_seqs = kNumSeqs;
  config_.max_num_batched_tokens = kNumSeqs * 64;
  config_.max_model_len = 2048;
  config_.num_blocks = kNumSeqs * 64;
  for (int i = 0; i < kNumSeqs; ++i) add(60, 600);
  complete(schedule());
  BatchPlan in_flight = schedule();
  std::vector<double> schedule_us, complete_us;
  for (int i = 0; i < 400; ++i) {
    const auto start = std::chrono::steady_clock::now();
    BatchPlan plan = scheduler().schedule();
    const auto planned = std::chrono::steady_clock::now();
    std::vector<SampledToken> sampled(kNumSeqs);
    for (size_t k = 0; k < kNumSeqs; ++k) {
      sampled[k].seq_id = in_flight.slices[k].seq_id;
      sampled[k].token_id = static_cast<int32_t>(k);
    }
    const auto back = std::chrono::steady_clock::now();
    scheduler().complete(in_flight, sampled);
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
  EXPECT_DEATH(Scheduler(SchedulerConfig{}), "KV cache blocks; got 0");
}

}  // namespace
}  // namespace quire
