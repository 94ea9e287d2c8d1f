#include "attn/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace quire {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

constexpr AttentionShape kShape = {.num_heads = 64,
                                   .num_kv_heads = 8,
                                   .head_dim = 128,
                                   .head_dim_v = 128,
                                   .page_size = 16,
                                   .q = DType::kBF16,
                                   .kv = DType::kBF16,
                                   .out = DType::kBF16};

TEST(Workload, RaggedLengthsAreTheSeedsAndNothingElses) {
  for (const int q_len : {1, 8}) {
    const AttentionWorkload workload = ragged_workload(256, q_len, 4096, 7);
    EXPECT_EQ(workload.kv_lens, ragged_workload(256, q_len, 4096, 7).kv_lens);
    EXPECT_NE(workload.kv_lens, ragged_workload(256, q_len, 4096, 8).kv_lens);
    EXPECT_GE(*std::ranges::min_element(workload.kv_lens), q_len);
    EXPECT_LE(*std::ranges::max_element(workload.kv_lens), 4096);
    double total = 0.0;
    for (const int32_t kv_len : workload.kv_lens) total += kv_len;
    EXPECT_NEAR(total / 256.0, 2048.0, 250.0);
    EXPECT_TRUE(decode_key(workload).ragged);
  }
  EXPECT_THAT(ragged_workload(100, 5, 5, 0).kv_lens, Each(5));
}

TEST(Workload, CountsPagesBytesAndOperations) {
  AttentionWorkload workload = full_workload(Phase::kDecode, 3, 1, 17);
  EXPECT_EQ(num_pages(workload, 16), 6);
  EXPECT_EQ(num_kv_bytes(kShape, workload), 3 * 17 * 4096.0);
  EXPECT_EQ(num_operations(kShape, workload), 3 * 17 * 64 * 512.0);
  workload.kv_lens = {1, 16, 33};
  EXPECT_EQ(num_pages(workload, 16), 5);
  EXPECT_EQ(num_kv_bytes(kShape, workload), 50 * 4096.0);
  // Four queries see 1, 2, 3 and 4 positions.
  const AttentionWorkload prompt = full_workload(Phase::kPrefill, 1, 4, 4);
  EXPECT_EQ(num_operations(kShape, prompt), 10 * 64 * 512.0);
}

TEST(Workload, AStepIsKnownByItsLengths) {
  AttentionWorkload workload = full_workload(Phase::kDecode, 4, 1, 1024);
  EXPECT_EQ(decode_key(workload), (DecodeKey{.num_reqs = 4, .max_kv_len = 1024}));
  workload.kv_lens = {1, 900, 1, 1};
  EXPECT_EQ(decode_key(workload), (DecodeKey{.num_reqs = 4, .max_kv_len = 900, .ragged = true}));
  EXPECT_EQ(decode_key(AttentionWorkload()), DecodeKey());
}

auto point_of(const AttentionWorkload& workload) {
  return std::tuple(workload.phase, workload.num_reqs(), workload.q_len, workload.max_kv_len,
                    workload.ragged);
}

TEST(Workload, TheTuningGridHoldsEveryCellOfTheBenchGrids) {
  const std::vector<AttentionWorkload> tuned = tuning_grid(false);
  EXPECT_THAT(tuned, SizeIs(9 * 8 + 9 * 7 + 4 * (3 * 5 + 3 * 4) + 3));
  std::set<decltype(point_of(tuned[0]))> points;
  for (const AttentionWorkload& workload : tuned) {
    EXPECT_TRUE(points.insert(point_of(workload)).second) << "twice";
    EXPECT_EQ(workload.pool_pages, workload.ragged ? 16'000 : 0);
  }
  for (const BenchGrid grid : {BenchGrid::kSeed, BenchGrid::kStrict}) {
    const std::vector<AttentionWorkload> cells = bench_grid({.grid = grid});
    EXPECT_THAT(cells, SizeIs(64));
    for (const AttentionWorkload& cell : cells) {
      if (cell.ragged && cell.num_reqs() == 1) continue;
      EXPECT_TRUE(points.contains(point_of(cell)));
      EXPECT_EQ(cell.pool_pages, grid == BenchGrid::kSeed ? 16'000 : 0);
    }
  }
  EXPECT_LT(tuning_grid(true).size(), 20U);
}

TEST(Workload, TheTuningGridHasTheQueryLengthsThatAreAskedFor) {
  EXPECT_THAT(tuning_grid(false, std::array{1}), SizeIs(9 * 8 + 9 * 7 + 3));
  const std::vector<AttentionWorkload> longer = tuning_grid(false, std::array{3, 9});
  EXPECT_THAT(longer, SizeIs(2 * 27));
  for (const AttentionWorkload& workload : longer) {
    EXPECT_EQ(workload.phase, Phase::kDecode);
    EXPECT_TRUE(workload.q_len == 3 || workload.q_len == 9);
    EXPECT_TRUE(use_of(workload).in_graph);
    EXPECT_EQ(use_of(workload).q_len, workload.q_len);
  }
  std::set<int> quick;
  for (const AttentionWorkload& workload : tuning_grid(true)) {
    if (workload.phase == Phase::kDecode) quick.insert(workload.q_len);
  }
  EXPECT_THAT(quick, ::testing::ElementsAre(1, 5));
  EXPECT_EQ(use_of(tuning_grid(true).back()), (AttentionUse{.phase = Phase::kPrefill}));
}

TEST(Workload, ABenchGridIsWhatIsAskedFor) {
  const std::vector<AttentionWorkload> cells = bench_grid(
      {.grid = BenchGrid::kStrict, .num_seqs = {2, 3}, .kv_lens = {4, 100}, .q_lens = {5}});
  ASSERT_THAT(cells, SizeIs(2));  // 5 queries do not fit 4 positions
  EXPECT_EQ(cells[1].num_reqs(), 3);
  EXPECT_EQ(cells[1].q_len, 5);
  EXPECT_THAT(cells[1].kv_lens, Each(100));
  EXPECT_THAT(bench_grid({.num_seqs = {2}, .kv_lens = {4, 100}, .q_lens = {1, 5}}), SizeIs(3));
  const std::vector<AttentionWorkload> prompts =
      bench_grid({.grid = BenchGrid::kPrefill, .num_seqs = {4}, .kv_lens = {512}});
  ASSERT_THAT(prompts, SizeIs(1));
  EXPECT_EQ(prompts[0].phase, Phase::kPrefill);
  EXPECT_EQ(prompts[0].q_len, 512);
  EXPECT_THAT(bench_grid({.grid = BenchGrid::kPrefill}), SizeIs(4));
  EXPECT_NE(bench_grid({.seed = 1})[8].kv_lens, bench_grid({.seed = 2})[8].kv_lens);
}

}  // namespace
}  // namespace quire
