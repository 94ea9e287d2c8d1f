#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

MemoryRequest request() {
  return {.block_bytes = 1 << 20,
          .block_size = 16,
          .max_model_len = 160,
          .max_num_seqs = 4,
          .budget = {.free_bytes = int64_t{1} << 30, .kv_share = 0.25}};
}

TEST(MemoryPlan, TakesWhatAllSequencesNeedAndThePaddingPage) {
  const auto plan = plan_memory(request());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->num_blocks, 4 * 10 + 1);
  EXPECT_EQ(plan->num_kv_tokens, 640);
}

TEST(MemoryPlan, LeavesThreeQuartersOfTheMachine) {
  MemoryRequest big = request();
  big.max_num_seqs = 10'000;
  const auto plan = plan_memory(big);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kv_bytes, (int64_t{1} << 30) / 4);
}

TEST(MemoryPlan, SaysWhatWouldFit) {
  MemoryRequest small = request();
  small.kv_cache_memory = 5 << 20;
  const auto plan = plan_memory(small);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.status().message(), ::testing::HasSubstr("--max-model-len to at most 64"));
  small.max_model_len = 64;
  EXPECT_TRUE(plan_memory(small).ok());
}

TEST(MemoryPlan, CountsWhatIsTakenBesideTheCache) {
  MemoryRequest heavy = request();
  heavy.weight_bytes = (int64_t{1} << 30) - (8 << 20);
  EXPECT_THAT(plan_memory(heavy).status().message(), ::testing::HasSubstr("--kv-cache-memory"));
  heavy.weight_bytes = int64_t{2} << 30;
  EXPECT_THAT(plan_memory(heavy).status().message(), ::testing::HasSubstr("too small"));
}

TEST(MemoryPlan, NamesTheOwnerOfTheMemory) {
  MemoryRequest heavy = request();
  heavy.budget.owner = "GPU";
  heavy.reserve_bytes = 7 << 20;
  const auto plan = plan_memory(heavy);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(describe(heavy, *plan), ::testing::HasSubstr("graphs and libraries 7.0 MiB"));
  EXPECT_THAT(describe(heavy, *plan), ::testing::HasSubstr("MiB of the GPU stay free"));
  heavy.weight_bytes = int64_t{2} << 30;
  EXPECT_THAT(plan_memory(heavy).status().message(),
              ::testing::HasSubstr("raise --gpu-memory-utilization"));
  EXPECT_THAT(describe(request(), *plan), ::testing::HasSubstr("MiB of the machine stay free"));
}

}  // namespace
}  // namespace quire
