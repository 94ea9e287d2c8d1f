#include "platform/batch_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr std::array kNoWindow = {0};

// The batch has a decoding sequence of 17 tokens (by the host's upper bound 21), the last token of
// a prompt of 5, and a prompt chunk of 3 tokens after 2 cached ones.
BatchPlan mixed_plan() {
  BatchPlan plan;
  plan.spans = {{.seq_id = 1,
                 .slot = 4,
                 .decodes = true,
                 .num_computed = 20,
                 .num_tokens = 1,
                 .first_token = 0,
                 .num_blocks = 2,
                 .samples = true},
                {.seq_id = 2,
                 .slot = 0,
                 .num_computed = 4,
                 .num_tokens = 1,
                 .first_token = 1,
                 .num_blocks = 1,
                 .samples = true},
                {.seq_id = 3,
                 .slot = 1,
                 .num_computed = 2,
                 .num_tokens = 3,
                 .first_token = 2,
                 .num_blocks = 2}};
  plan.num_decode = 2;
  plan.token_ids = {kPlaceholderToken, 9, 30, 31, 32};
  return plan;
}

TEST(BatchInputs, SpellsOutAMixedStep) {
  const std::vector<int32_t> blocks_a = {3, 8};
  const std::vector<int32_t> blocks_b = {5};
  const std::vector<int32_t> blocks_c = {7, 6};  // one page more than the step needs
  const std::vector<int32_t> next_tokens = {77};
  const std::vector<SlotView> slots = {
      {{&blocks_a, 1}, 16, next_tokens}, {{&blocks_b, 1}, 90, {}}, {{&blocks_c, 1}, 90, {}}};
  BatchInputs inputs;
  const BatchPlan mixed = mixed_plan();
  inputs.build(mixed, mixed.spans, slots, 16, kNoWindow);
  EXPECT_THAT(inputs.token_ids, ElementsAre(77, 9, 30, 31, 32));
  EXPECT_THAT(inputs.positions, ElementsAre(16, 4, 2, 3, 4));
  EXPECT_THAT(inputs.tables[0].kv_slots,
              ElementsAre(8 * 16, 5 * 16 + 4, 7 * 16 + 2, 7 * 16 + 3, 7 * 16 + 4));
  EXPECT_THAT(inputs.query_start, ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(inputs.seq_lens, ElementsAre(17, 5, 5));
  EXPECT_THAT(inputs.kv_len_bound, ElementsAre(21, 5, 5));
  EXPECT_EQ(inputs.tables[0].attention.max_pages, 2);
  EXPECT_THAT(inputs.tables[0].block_table, ElementsAre(3, 8, 5, 0, 7, 0));
}

TEST(BatchInputs, RangesArePerPhase) {
  const std::vector<int32_t> blocks = {1, 2};
  const std::vector<int32_t> next_tokens = {0};
  const std::vector<SlotView> slots(3, SlotView{{&blocks, 1}, 0, next_tokens});
  BatchInputs inputs;
  const BatchPlan mixed = mixed_plan();
  inputs.build(mixed, mixed.spans, slots, 16, kNoWindow);
  EXPECT_EQ(inputs.tables[0].attention.decode.num_reqs, 2);
  EXPECT_EQ(inputs.tables[0].attention.decode.num_tokens, 2);
  EXPECT_EQ(inputs.tables[0].attention.decode.max_q_len, 1);
  EXPECT_EQ(inputs.tables[0].attention.decode.max_kv_len, 21);
  EXPECT_EQ(inputs.tables[0].attention.prefill.first_req, 2);
  EXPECT_EQ(inputs.tables[0].attention.prefill.first_token, 2);
  EXPECT_EQ(inputs.tables[0].attention.prefill.num_tokens, 3);
  EXPECT_EQ(inputs.tables[0].attention.prefill.max_kv_len, 5);
}

TEST(BatchInputs, KeepsNothingOfTheStepBefore) {
  const std::vector<int32_t> blocks = {1, 2};
  const std::vector<int32_t> next_tokens = {0};
  const std::vector<SlotView> slots(3, SlotView{{&blocks, 1}, 0, next_tokens});
  BatchInputs inputs;
  const BatchPlan mixed = mixed_plan();
  inputs.build(mixed, mixed.spans, slots, 16, kNoWindow);
  BatchPlan plan;
  plan.spans = {{.seq_id = 1, .num_tokens = 2, .num_blocks = 1}};
  plan.token_ids = {1, 2};
  inputs.build(plan, plan.spans, std::span(slots).first(1), 16, kNoWindow);
  EXPECT_THAT(inputs.token_ids, ElementsAre(1, 2));
  EXPECT_EQ(inputs.tables[0].attention.decode.num_reqs, 0);
  EXPECT_EQ(inputs.tables[0].attention.prefill.num_reqs, 1);
  EXPECT_EQ(inputs.tables[0].attention.kv_len_bound.size(), 1U);
}

// Five sequences that decode with up to 4 drafts, of which the fourth is under a constraint, and
// two chunks of prompts. The first chunk has the length of a decode.
BatchPlan plan_of_drafts() {
  BatchPlan plan;
  plan.decode_q_len = 5;
  const auto add = [&](const SeqSpan& span) {
    plan.spans.push_back(span);
    plan.spans.back().slot = static_cast<int>(plan.spans.size()) - 1;
    plan.spans.back().first_token = plan.num_tokens();
    for (int i = 0; i < span.num_tokens; ++i) {
      plan.token_ids.push_back(span.decodes ? kPlaceholderToken : 60 + plan.num_tokens());
    }
  };
  const SeqSpan decode = {.decodes = true,
                          .num_computed = 7,
                          .num_tokens = 5,
                          .num_blocks = 1,
                          .samples = true,
                          .num_drafts = 4};
  SeqSpan constrained = decode;
  constrained.num_drafts = 0;
  for (const SeqSpan& span : {decode, decode, decode, constrained}) add(span);
  add({.num_tokens = 5, .num_blocks = 1});
  add(decode);
  plan.num_decode = 6;
  add({.num_computed = 2, .num_tokens = 3, .num_blocks = 1, .samples = true});
  return plan;
}

TEST(CutDrafts, LeavesTheTokensThatExist) {
  const BatchPlan plan = plan_of_drafts();
  const std::vector<int32_t> num_proposed = {4, 15, 0, 4, 0, 2, 0};
  const std::vector<SeqSpan> spans = cut_drafts(plan, num_proposed);
  std::vector<int> num_tokens, first_tokens, num_sampled;
  for (const SeqSpan& span : spans) {
    num_tokens.push_back(span.num_tokens);
    first_tokens.push_back(span.first_token);
    num_sampled.push_back(span.max_sampled());
  }
  EXPECT_THAT(num_tokens, ElementsAre(5, 5, 1, 1, 5, 3, 3));
  EXPECT_THAT(first_tokens, ElementsAre(0, 5, 10, 11, 12, 17, 20));
  EXPECT_THAT(num_sampled, ElementsAre(5, 5, 1, 1, 0, 3, 1));
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_LE(spans[i].kv_len_bound(), plan.spans[i].kv_len_bound());
    EXPECT_EQ(spans[i].num_computed, plan.spans[i].num_computed);
  }
}

TEST(CutDrafts, ChangesNothingWhereAllDraftsExist) {
  const BatchPlan plan = mixed_plan();
  const std::vector<SeqSpan> spans = cut_drafts(plan, std::vector<int32_t>(5, 0));
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].num_tokens, plan.spans[i].num_tokens);
    EXPECT_EQ(spans[i].first_token, plan.spans[i].first_token);
  }
}

TEST(BatchInputs, HasNoRowOfADraftThatDoesNotExist) {
  const std::vector<int32_t> blocks = {3};
  const std::vector<int32_t> next_tokens = {70, 71, 72, 73, 74};
  const std::vector<SlotView> slots(7, SlotView{{&blocks, 1}, 6, next_tokens});
  const BatchPlan plan = plan_of_drafts();
  BatchInputs inputs;
  inputs.build(plan, cut_drafts(plan, std::vector<int32_t>{1, 0, 0, 0, 0, 2, 0}), slots, 16,
               kNoWindow);
  EXPECT_THAT(inputs.token_ids,
              ElementsAre(70, 71, 70, 70, 70, 80, 81, 82, 83, 84, 70, 71, 72, 90, 91, 92));
  EXPECT_THAT(inputs.positions, ElementsAre(6, 7, 6, 6, 6, 0, 1, 2, 3, 4, 6, 7, 8, 2, 3, 4));
  EXPECT_THAT(inputs.query_start, ElementsAre(0, 2, 3, 4, 5, 10, 13, 16));
  EXPECT_THAT(inputs.seq_lens, ElementsAre(8, 7, 7, 7, 5, 9, 5));
  EXPECT_THAT(inputs.kv_len_bound, ElementsAre(9, 8, 8, 8, 5, 10, 5));
  const AttentionBatch& attention = inputs.tables[0].attention;
  EXPECT_EQ(attention.decode.num_reqs, 6);
  EXPECT_EQ(attention.decode.num_tokens, 13);
  EXPECT_EQ(attention.decode.max_q_len, 5);
  EXPECT_EQ(attention.prefill.first_token, 13);
  EXPECT_EQ(attention.prefill.num_tokens, 3);
  EXPECT_EQ(inputs.tables[0].kv_slots.size(), 16U);
}

// A query at position 40 with a window of 20 reads back to position 21, so only the second table
// drops its first page.
TEST(BatchInputs, EachTableDropsPagesBeforeItsWindow) {
  const std::array<std::vector<int32_t>, 2> blocks = {{{3, 8, 6}, {99, 4, 5}}};
  const std::vector<int32_t> next_tokens = {70};
  constexpr std::array kWindows = {0, 20};
  BatchPlan plan;
  plan.spans = {{.decodes = true, .num_computed = 40, .num_tokens = 1, .num_blocks = 3}};
  plan.num_decode = 1;
  plan.token_ids = {kPlaceholderToken};
  BatchInputs inputs;
  inputs.build(plan, plan.spans, {{SlotView{blocks, 40, next_tokens}}}, 16, kWindows);
  EXPECT_THAT(inputs.tables[0].block_table, ElementsAre(3, 8, 6));
  EXPECT_THAT(inputs.tables[0].kv_slots, ElementsAre(6 * 16 + 8));
  EXPECT_THAT(inputs.tables[1].block_table, ElementsAre(0, 4, 5));
  EXPECT_THAT(inputs.tables[1].kv_slots, ElementsAre(5 * 16 + 8));
}

// Drafts after the last block that the sequence may need have no KV slot, and the table has the
// padding page in their place.
TEST(BatchInputs, DraftsBehindTheBlocksAreNotWritten) {
  const std::vector<int32_t> blocks = {3, 8, 6};  // the last block was freed
  const std::vector<int32_t> next_tokens = {70, 71, 72, 73};
  BatchPlan plan;
  plan.spans = {{.decodes = true, .num_computed = 33, .num_tokens = 4, .num_blocks = 2}};
  plan.num_decode = 1;
  plan.token_ids.assign(4, kPlaceholderToken);
  BatchInputs inputs;
  inputs.build(plan, plan.spans, {{SlotView{{&blocks, 1}, 30, next_tokens}}}, 16, kNoWindow);
  EXPECT_THAT(inputs.token_ids, ElementsAre(70, 71, 72, 73));
  EXPECT_THAT(inputs.positions, ElementsAre(30, 31, 32, 33));
  EXPECT_THAT(inputs.tables[0].kv_slots, ElementsAre(8 * 16 + 14, 8 * 16 + 15, -1, -1));
  EXPECT_THAT(inputs.seq_lens, ElementsAre(34));
  EXPECT_THAT(inputs.tables[0].block_table, ElementsAre(3, 8, 0));
}

// A step that was planned before its sequence ended still runs. The page that it would write is
// full, and may be in the prefix cache.
TEST(BatchInputs, AnEndedSequenceLeavesItsPages) {
  const std::vector<int32_t> blocks = {3, 8};
  const std::vector<int32_t> next_tokens = {70, 71};
  BatchPlan plan;
  plan.spans = {{.decodes = true, .num_computed = 31, .num_tokens = 2, .num_blocks = 2}};
  plan.num_decode = 1;
  plan.token_ids.assign(2, kPlaceholderToken);
  BatchInputs inputs;
  inputs.build(plan, plan.spans, {{SlotView{{&blocks, 1}, 32, next_tokens}}}, 16, kNoWindow);
  EXPECT_THAT(inputs.positions, ElementsAre(31, 32));
  EXPECT_THAT(inputs.tables[0].kv_slots, ElementsAre(-1, -1));
  EXPECT_THAT(inputs.seq_lens, ElementsAre(33));
}

}  // namespace
}  // namespace quire
