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

TEST_F(SchedulerTest, SaysWhyAPrefixIsNotCached) {
  config_.tables = {{.num_blocks = 9}};
  config_.max_num_batched_tokens = 128;
  const auto miss_of = [&](int num_prompt, const Options& options) {
    const SeqId id = add(num_prompt, 1, options);
    step();
    const CacheMiss miss = seq(id).cache_miss;
    scheduler().finish(id);
    return miss;
  };
  EXPECT_EQ(miss_of(48, {.first_id = 1}), CacheMiss::kFirstUse);
  EXPECT_EQ(miss_of(48, {.first_id = 1}), CacheMiss::kNone);
  EXPECT_EQ(miss_of(16, {.first_id = 1}), CacheMiss::kTooShort) << "the last token is computed";
  EXPECT_EQ(miss_of(48, {.salt = "s", .first_id = 1}), CacheMiss::kFirstUse);
  EXPECT_EQ(miss_of(48, {.prompt_logprobs = 2, .first_id = 1}), CacheMiss::kDisabled);
  EXPECT_EQ(miss_of(80, {.first_id = 1}), CacheMiss::kChangedPrompt)
      << "it continues a cached prompt";
  EXPECT_EQ(miss_of(120, {.first_id = 5000}), CacheMiss::kFirstUse) << "takes all blocks";
  EXPECT_EQ(miss_of(48, {.first_id = 1}), CacheMiss::kEvicted);
  EXPECT_THAT(scheduler().stats().cache_misses, ::testing::ElementsAre(1, 1, 1, 3, 1, 1, 0));
}

TEST_F(SchedulerTest, SaysThatAWindowedTableEvicted) {
  config_.tables = {{.num_blocks = 65}, {.num_blocks = 4, .window = 32}};
  for (const int first_id : {1, 5000}) {
    const SeqId id = add(48, 1, {.first_id = first_id});
    step();
    scheduler().finish(id);
  }
  const SeqId again = add(48, 1, {.first_id = 1});
  step();
  EXPECT_EQ(seq(again).num_cached_tokens, 0);
  EXPECT_EQ(seq(again).cache_miss, CacheMiss::kEvicted);
}

// A later prompt can begin near the end of a long prompt that was cut off.
TEST_F(SchedulerTest, ALongPromptThatIsCutOffKeepsItsNewestStates) {
  config_.max_model_len = 4096;
  config_.tables = {{.num_blocks = 300}, {.num_blocks = 40, .window = 17, .holds_states = true}};
  config_.max_num_batched_tokens = 250;
  const auto cached_of = [&](int num_prompt) {
    const SeqId id = add(num_prompt, 1, {.first_id = 1});
    step();
    const int num_cached = seq(id).num_cached_tokens;
    scheduler().finish(id);
    return num_cached;
  };
  const SeqId cut = add(2000, 1, {.first_id = 1});
  for (int i = 0; i < 6; ++i) step();  // 1,500 tokens
  scheduler().finish(cut);
  // At 512 and 1,024, and of the block in which the last chunk began.
  EXPECT_EQ(scheduler().cached_hashes(1).size(), 3);
  EXPECT_EQ(cached_of(1100), 1024);
  EXPECT_EQ(cached_of(1400), 1264);
  EXPECT_EQ(cached_of(500), 0) << "keys and values are cached, but no state";
  EXPECT_EQ(scheduler().stats().cache_misses[static_cast<size_t>(CacheMiss::kNoSnapshot)], 3);
}

TEST_F(SchedulerTest, SaysThatAStateWasEvicted) {
  config_.tables = {{.num_blocks = 200}, {.num_blocks = 8, .window = 17, .holds_states = true}};
  config_.max_num_batched_tokens = 128;
  for (int i = 0; i < 10; ++i) {
    const SeqId id = add(100, 1, {.first_id = 1 + 2000 * i});
    step();
    scheduler().finish(id);
  }
  const SeqId again = add(100, 1, {.first_id = 1});
  step();
  EXPECT_EQ(seq(again).num_cached_tokens, 0);
  EXPECT_EQ(seq(again).cache_miss, CacheMiss::kEvicted);
  scheduler().finish(again);
  const SeqId shorter = add(60, 1, {.first_id = 1});
  step();
  EXPECT_EQ(seq(shorter).cache_miss, CacheMiss::kNoSnapshot) << "a prompt never ended there";
}

TEST_F(SchedulerTest, AConversationThatPausesOutlastsManyTurnsOfAnother) {
  config_.max_model_len = 4096;
  config_.tables = {{.num_blocks = 600}, {.num_blocks = 21, .window = 17, .holds_states = true}};
  config_.max_num_batched_tokens = 4096;
  const auto cached_of = [&](int num_prompt, int first_id) {
    const SeqId id = add(num_prompt, 1, {.first_id = first_id});
    step();
    const int num_cached = seq(id).num_cached_tokens;
    scheduler().finish(id);
    return num_cached;
  };
  cached_of(100, 1);
  for (int num_prompt = 100; num_prompt < 3000; num_prompt += 50) {
    EXPECT_EQ(cached_of(num_prompt, 5000), num_prompt == 100 ? 0 : (num_prompt - 50) / 16 * 16);
  }
  EXPECT_EQ(cached_of(2700, 5000), 2688) << "an earlier end is kept while there is room";
  EXPECT_EQ(cached_of(150, 1), 96);
}

// A computed prompt keeps the state of its last full block alone, and the answer that of its own.
TEST_F(SchedulerTest, AFinishedSequenceKeepsTwoStates) {
  config_.max_model_len = 4096;
  config_.tables = {{.num_blocks = 300}, {.num_blocks = 40, .window = 17, .holds_states = true}};
  config_.max_num_batched_tokens = 700;
  const SeqId id = add(2100, 100, {.first_id = 1});
  for (int i = 0; i < 90; ++i) step();
  // The prompt's, and the last two of the answer: the newest block may not be full.
  EXPECT_LE(scheduler().cached_hashes(1).size(), 3);
  scheduler().finish(id);
  EXPECT_EQ(scheduler().cached_hashes(1).size(), 2);
}

// The newest full block has tokens after the stop, so that no later prompt begins with it.
TEST_F(SchedulerTest, AnAnswerThatStopsWithinItsDraftsKeepsAStateBeforeItsEnd) {
  config_.num_drafts = 3;
  config_.tables = {{.num_blocks = 65}, {.num_blocks = 40, .window = 17, .holds_states = true}};
  const SeqId id = add(40, 60, {.first_id = 1});
  last_token_ = 40;  // the answer continues the prompt
  BatchPlan plan = schedule();
  while (seq(id).token_ids.size() < 65) {
    BatchPlan next = schedule();
    complete(plan, 3);
    plan = std::move(next);
  }
  scheduler().finish(id, 23);  // 63 tokens, two of the last step's
  complete(plan);
  EXPECT_EQ(scheduler().cached_hashes(1).size(), 2) << "prompt and answer";
  const SeqId again = add(63, 1, {.first_id = 1});
  step();
  EXPECT_EQ(seq(again).num_cached_tokens, 48);
}

TEST_F(SchedulerTest, APromptWithAnotherLastMessageBeginsAtTheHistory) {
  config_.max_model_len = 4096;
  config_.tables = {{.num_blocks = 600}, {.num_blocks = 40, .window = 17, .holds_states = true}};
  config_.max_num_batched_tokens = 700;
  const Options options = {.first_id = 1, .num_history_tokens = 1010};
  const SeqId id = add(1500, 100, options);
  for (int i = 0; i < 60; ++i) step();
  scheduler().finish(id);
  EXPECT_EQ(scheduler().cached_hashes(1).size(), 3) << "history, prompt and answer";
  const SeqId other = add(1015, 1, options);  // an equal prompt up to its end
  step();
  EXPECT_EQ(seq(other).num_cached_tokens, 1008);
}

TEST_F(SchedulerTest, WithoutPrefixCachingEveryPromptMisses) {
  config_.enable_prefix_caching = false;
  config_.collects_kv_events = true;
  const SeqId id = add(48, 1);
  step();
  EXPECT_EQ(seq(id).cache_miss, CacheMiss::kDisabled);
  EXPECT_TRUE(scheduler().take_kv_events().empty());
}

TEST_F(SchedulerTest, EventsNameAdjacentBlocksOnce) {
  config_.collects_kv_events = true;
  const SeqId a = add(40, 20, {.salt = "s", .first_id = 1});
  add(40, 20, {.salt = "s", .first_id = 1});
  step();
  const std::vector<KvEvent> events = scheduler().take_kv_events();
  ASSERT_EQ(events.size(), 1U) << "the second sequence adds no block";
  const auto& stored = std::get<BlocksStored>(events.front());
  EXPECT_EQ(stored.hashes.size(), 2U);
  EXPECT_EQ(stored.parent, std::nullopt);
  EXPECT_EQ(stored.salt, "s");
  EXPECT_EQ(stored.token_ids.size(), 32U);
  EXPECT_TRUE(scheduler().take_kv_events().empty());
  for (int i = 0; i < 9; ++i) step();
  const std::vector<KvEvent> later = scheduler().take_kv_events();
  ASSERT_FALSE(later.empty());
  const auto& next = std::get<BlocksStored>(later.front());
  EXPECT_EQ(next.parent, stored.hashes.back());
  EXPECT_EQ(next.salt, "") << "only the first block has it as a key";
  EXPECT_EQ(next.token_ids,
            std::vector<int32_t>(seq(a).token_ids.begin() + 32, seq(a).token_ids.begin() + 48));
}

TEST_F(SchedulerTest, CollectsNoEventsByDefault) {
  add(40, 9);
  step();
  EXPECT_TRUE(scheduler().take_kv_events().empty());
}

}  // namespace
}  // namespace quire
