#include "sched/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

using ::testing::HasSubstr;

Sequence sequence(int num_prompt, int max_total) {
  Sequence seq;
  seq.token_ids = std::vector<int32_t>(static_cast<size_t>(num_prompt), 1);
  seq.num_prompt_tokens = num_prompt;
  seq.max_total_tokens = max_total;
  return seq;
}

TEST(Policy, RanksByPriorityThenArrivalThenId) {
  Sequence a, b;
  a.priority = -1, a.arrival = 9;
  b.priority = 0, b.arrival = 1;
  EXPECT_TRUE(ranks_before(a, b));
  EXPECT_FALSE(ranks_before(b, a));
  a.priority = 0;
  EXPECT_TRUE(ranks_before(b, a));
  a.arrival = 1, a.id = 5, b.id = 4;
  EXPECT_TRUE(ranks_before(b, a));
  EXPECT_FALSE(ranks_before(a, a));
}

TEST(Policy, TokensDueCountThoseInFlight) {
  Sequence seq = sequence(10, 13);
  EXPECT_EQ(num_tokens_due(seq, 4), 10);
  seq.state = SeqState::kRunning, seq.num_prefill = 10;
  seq.num_scheduled = 4;
  EXPECT_EQ(num_tokens_due(seq, 4), 6);
  seq.num_scheduled = 10, seq.num_in_flight = 1;
  EXPECT_EQ(num_tokens_due(seq, 0), 1);
  EXPECT_EQ(num_tokens_due(seq, 4), 5) << "a token and its drafts";
  seq.num_scheduled = 20, seq.num_in_flight = 3;
  EXPECT_EQ(num_tokens_due(seq, 4), 0) << "the last token is certainly in flight";
}

TEST(Policy, ConstrainedSequencesWaitForTheTokenInFlight) {
  Sequence seq = sequence(10, 13);
  seq.is_constrained = true;
  EXPECT_EQ(num_tokens_due(seq, 0), 10);
  seq.state = SeqState::kRunning, seq.num_prefill = 10;
  seq.num_scheduled = 10, seq.num_in_flight = 1;
  EXPECT_EQ(num_tokens_due(seq, 0), 0);
  seq.token_ids.push_back(1), seq.num_in_flight = 0;
  EXPECT_EQ(num_tokens_due(seq, 0), 1);
}

TEST(Policy, BlocksAreRoundedUp) {
  EXPECT_EQ(num_blocks_for(0, 16), 0);
  EXPECT_EQ(num_blocks_for(1, 16), 1);
  EXPECT_EQ(num_blocks_for(16, 16), 1);
  EXPECT_EQ(num_blocks_for(17, 16), 2);
}

TEST(Policy, RefusesRequestsThatCanNeverFitWithTheNumbers) {
  SchedulerConfig config;
  config.max_model_len = 100;
  config.tables = {{.num_blocks = 4}};
  const auto refusal = [&](const Sequence& seq) { return check_servable(seq, config).message(); };
  EXPECT_EQ(refusal(sequence(10, 49)), "");  // 48 tokens in 3 blocks; the last is not computed
  EXPECT_THAT(refusal(sequence(10, 50)), HasSubstr("need 4 KV blocks of 16 tokens; got 3"));
  EXPECT_THAT(refusal(sequence(10, 101)),
              HasSubstr("got 101 tokens, expected at most `max_model_len`"));
  EXPECT_THAT(refusal(sequence(20, 20)), HasSubstr("got 20 prompt tokens, expected fewer than 20"));
  EXPECT_THAT(refusal(sequence(20, -1)), HasSubstr("no room for an output token"));
  EXPECT_THAT(refusal(sequence(0, 20)), HasSubstr("got 0, expected at least 1"));
  config.max_num_batched_tokens = 16;
  EXPECT_EQ(refusal(sequence(17, 20)), "");
  config.enable_chunked_prefill = false;
  EXPECT_EQ(refusal(sequence(16, 20)), "");
  EXPECT_THAT(refusal(sequence(17, 20)),
              HasSubstr("got 17 tokens, expected at most `max_num_batched_tokens` 16"));
}

TEST(Policy, ConfigErrorsNameTheFlag) {
  const auto refusal = [](auto change) {
    SchedulerConfig config;
    config.tables = {{.num_blocks = 8}};
    change(config);
    return validate_scheduler_config(config).message();
  };
  EXPECT_EQ(refusal([](SchedulerConfig&) {}), "");
  EXPECT_EQ(refusal([](SchedulerConfig& c) { c.block_size = 64; }), "");
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.block_size = 8; }),
              HasSubstr("block_size: must be 16, 32 or 64, got 8"));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_num_seqs = 0; }), HasSubstr("max_num_seqs"));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_num_rule_seqs = 0; }),
              HasSubstr("max_num_rule_seqs"));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_num_batched_tokens = 0; }),
              HasSubstr("max_num_batched_tokens"));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.max_model_len = 1; }), HasSubstr("max_model_len"));
  EXPECT_THAT(refusal([](SchedulerConfig& c) { c.tables = {{.num_blocks = 1}}; }),
              HasSubstr("KV cache blocks"));
}

}  // namespace
}  // namespace quire
