#include "start/memory_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/decoder_sizes.h"
#include "model/model_loader.h"
#include "support/reference_ops.h"
#include "support/value_of.h"

namespace quire {
namespace {

MemoryRequest request() {
  return {.tables = {{.block_bytes = 1 << 20}},
          .sizes = {.max_num_seqs = 4, .max_model_len = 160, .block_size = 16},
          .budget = {.free_bytes = int64_t{1} << 30, .kv_share = 0.25}};
}

TEST(MemoryPlan, HasBlocksForAllSequencesAndThePaddingPage) {
  const auto plan = testing::value_of(plan_memory(request()));
  EXPECT_THAT(plan.num_blocks, ::testing::ElementsAre(4 * 10 + 1));
  EXPECT_EQ(plan.num_kv_tokens, 640);
}

TEST(MemoryPlan, LeavesThreeQuartersOfTheMachine) {
  MemoryRequest big = request();
  big.sizes.max_num_seqs = 10'000;
  const auto plan = testing::value_of(plan_memory(big));
  EXPECT_EQ(plan.kv_bytes, (int64_t{1} << 30) / 4);
}

// Half of the layers have windows of 64 tokens. For these, 4 sequences hold 6 blocks each, and a
// step's tokens take 9 more.
TEST(MemoryPlan, WindowsTakeNoMoreThanSequencesHold) {
  MemoryRequest windows = request();
  windows.tables.push_back({.block_bytes = 1 << 20, .window = 64});
  windows.sizes.max_num_tokens = 128;
  windows.kv_cache_memory = int64_t{134} << 20;
  const auto plan = testing::value_of(plan_memory(windows));
  EXPECT_THAT(plan.num_blocks, ::testing::ElementsAre(100, 34));
  EXPECT_EQ(plan.kv_bytes, int64_t{134} << 20);
  windows.kv_cache_memory = int64_t{40} << 20;
  EXPECT_THAT(plan_memory(windows)->num_blocks, ::testing::ElementsAre(20, 20));
  windows.tables.erase(windows.tables.begin());
  EXPECT_THAT(plan_memory(windows)->num_blocks, ::testing::ElementsAre(40));
}

// A state of 4 blocks' bytes has 4 blocks, and a small one 32 tokens. One sequence takes 10 more.
TEST(MemoryPlan, StatesTakeAboutHalfOfTheMemoryAtMost) {
  MemoryRequest states = request();
  states.tables.push_back({.block_bytes = 4 << 20, .window = 17, .holds_states = true});
  EXPECT_THAT(plan_memory(states)->num_blocks, ::testing::ElementsAre(41, 11 + 41 / 4));
  EXPECT_EQ(plan_memory(states)->num_kv_tokens, 640);
  states.kv_cache_memory = int64_t{100} << 20;
  EXPECT_THAT(plan_memory(states)->num_blocks, ::testing::ElementsAre(28, 11 + 28 / 4));
  states.tables[1].block_bytes = 1 << 10;
  EXPECT_THAT(plan_memory(states)->num_blocks, ::testing::ElementsAre(99, 11 + 99 / 2));
}

TEST(MemoryPlan, SucceedsWithTheLeastFreeMemoryAndNotWithLess) {
  MemoryRequest planned = request();
  planned.weight_bytes = 12'345'678;
  planned.activation_bytes = 9;
  MemoryRequest windows = planned;
  windows.tables.push_back({.block_bytes = 1 << 20, .window = 64});
  MemoryRequest fixed = planned;
  fixed.kv_cache_memory = int64_t{40} << 20;
  MemoryRequest whole = planned;
  whole.budget.kv_share = 1.0;
  for (MemoryRequest tight : {planned, windows, fixed, whole}) {
    tight.budget.free_bytes = least_free_bytes(tight);
    EXPECT_TRUE(plan_memory(tight).ok()) << tight.budget.free_bytes;
    --tight.budget.free_bytes;
    EXPECT_FALSE(plan_memory(tight).ok()) << tight.budget.free_bytes;
  }
}

TEST(MemoryPlan, NamesSizesInOneUnit) {
  MemoryRequest small = request();
  small.tables = {{.block_bytes = 12'000}};
  small.kv_cache_memory = 100 << 10;
  EXPECT_THAT(plan_memory(small).status().message(),
              ::testing::HasSubstr("; got 100.0 KiB, expected 128.9 KiB; raise"));
  small.kv_cache_memory = 131'999;
  EXPECT_THAT(plan_memory(small).status().message(),
              ::testing::HasSubstr("; got 131999 bytes, expected 132000 bytes; raise"));
}

TEST(MemoryPlan, NamesSizesThatWouldFit) {
  MemoryRequest small = request();
  small.kv_cache_memory = 5 << 20;
  const auto plan = plan_memory(small);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.status().message(), ::testing::HasSubstr("`max_model_len` to at most 64"));
  small.sizes.max_model_len = 64;
  EXPECT_TRUE(plan_memory(small).ok());
}

TEST(MemoryPlan, CountsMemoryBesideTheCache) {
  MemoryRequest heavy = request();
  heavy.weight_bytes = (int64_t{1} << 30) - (8 << 20);
  EXPECT_THAT(plan_memory(heavy).status().message(), ::testing::HasSubstr("`kv_cache_memory`"));
  heavy.weight_bytes = int64_t{2} << 30;
  EXPECT_THAT(plan_memory(heavy).status().message(),
              ::testing::HasSubstr("its weights take 2.0 GiB, and the machine has 1.0 GiB free"));
}

// The product of sizes from a config and from flags exceeds 63 bits.
TEST(MemoryPlan, AbsurdSizesAreRefusedOrBoundedByTheMemory) {
  MemoryRequest absurd = request();
  absurd.sizes.max_model_len = 1 << 24;
  absurd.tables[0].block_bytes = int64_t{1} << 38;
  absurd.sizes.max_num_seqs = 65535;
  EXPECT_THAT(plan_memory(absurd).status().message(), ::testing::HasSubstr("too small for any"));
  absurd.tables[0].block_bytes = int64_t{1} << 44;  // the product is 2^80, which is 0 modulo 2^64
  absurd.sizes.max_num_seqs = 65536;
  EXPECT_THAT(plan_memory(absurd).status().message(), ::testing::HasSubstr("too small for any"));
  absurd.weight_bytes = absurd.activation_bytes = int64_t{1} << 62;
  EXPECT_THAT(plan_memory(absurd).status().message(),
              ::testing::HasSubstr("the model does not fit"));

  MemoryRequest many = request();
  many.budget.free_bytes = int64_t{1} << 40;
  many.budget.kv_share = 1.0;
  many.tables[0].block_bytes = int64_t{1} << 18;
  many.sizes.max_model_len = 1 << 24;
  many.sizes.max_num_seqs = 1 << 26;  // 2^20 blocks each: 2^64 bytes
  const auto plan = testing::value_of(plan_memory(many));
  EXPECT_EQ(plan.kv_bytes, int64_t{1} << 40) << "the cache gets its whole share";
}

TEST(Footprint, StaysAtTheLargestSizeWhereAProductPasses63Bits) {
  constexpr int kMost = std::numeric_limits<int>::max();
  auto decoder = std::make_shared<DecoderConfig>();
  decoder->intermediate_size = kMost;
  decoder->num_heads = decoder->num_kv_heads = decoder->head_dim = 2;
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.hidden_size = config.vocab_size = kMost;
  config.family = decoder;
  const ModelLimits limits = {.max_num_tokens = kMost, .max_num_logit_rows = kMost};
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(estimate_activation_bytes(config, limits, testing::ReferenceOps()).value(), kLargest);
}

TEST(MemoryPlan, NamesTheOwnerOfTheMemory) {
  MemoryRequest heavy = request();
  heavy.budget.owner = "GPU";
  heavy.reserve_bytes = 7 << 20;
  const auto plan = testing::value_of(plan_memory(heavy));
  EXPECT_THAT(describe(heavy, plan), ::testing::HasSubstr("graphs and libraries 7.0 MiB"));
  EXPECT_THAT(describe(heavy, plan), ::testing::HasSubstr("MiB of the GPU stay free"));
  heavy.weight_bytes = int64_t{2} << 30;
  EXPECT_THAT(plan_memory(heavy).status().message(),
              ::testing::HasSubstr("raise `gpu_memory_utilization`"));
  EXPECT_THAT(describe(request(), plan), ::testing::HasSubstr("MiB of the machine stay free"));
}

// The padding page is not counted, as in the metrics.
TEST(MemoryPlan, ReportsTheBlocksThatHoldTokens) {
  const auto plan = testing::value_of(plan_memory(request()));
  const int64_t num_blocks = plan.num_kv_tokens / request().sizes.block_size;
  EXPECT_THAT(describe(request(), plan),
              ::testing::HasSubstr(fmt::format("({} blocks of {} tokens, {} tokens", num_blocks,
                                               request().sizes.block_size, plan.num_kv_tokens)));
}

}  // namespace
}  // namespace quire
