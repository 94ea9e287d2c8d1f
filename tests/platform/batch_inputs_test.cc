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
  inputs.build(mixed_plan(), slots, 16, kNoWindow);
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
  inputs.build(mixed_plan(), slots, 16, kNoWindow);
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
  inputs.build(mixed_plan(), slots, 16, kNoWindow);
  BatchPlan plan;
  plan.spans = {{.seq_id = 1, .num_tokens = 2, .num_blocks = 1}};
  plan.token_ids = {1, 2};
  inputs.build(plan, std::span(slots).first(1), 16, kNoWindow);
  EXPECT_THAT(inputs.token_ids, ElementsAre(1, 2));
  EXPECT_EQ(inputs.tables[0].attention.decode.num_reqs, 0);
  EXPECT_EQ(inputs.tables[0].attention.prefill.num_reqs, 1);
  EXPECT_EQ(inputs.tables[0].attention.kv_len_bound.size(), 1U);
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
  inputs.build(plan, {{SlotView{blocks, 40, next_tokens}}}, 16, kWindows);
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
  inputs.build(plan, {{SlotView{{&blocks, 1}, 30, next_tokens}}}, 16, kNoWindow);
  EXPECT_THAT(inputs.token_ids, ElementsAre(70, 71, 72, 73));
  EXPECT_THAT(inputs.positions, ElementsAre(30, 31, 32, 33));
  EXPECT_THAT(inputs.tables[0].kv_slots, ElementsAre(8 * 16 + 14, 8 * 16 + 15, -1, -1));
  EXPECT_THAT(inputs.seq_lens, ElementsAre(34));
  EXPECT_THAT(inputs.tables[0].block_table, ElementsAre(3, 8, 0));
}

}  // namespace
}  // namespace quire
