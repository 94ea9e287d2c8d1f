// Tests the grids of batches that are measured, and the report of their times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "base/json.h"
#include "bench/attention_bench_report.h"
#include "bench/attention_grid.h"

namespace quire::bench {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr AttentionShape kShape = {.num_heads = 64,
                                   .num_kv_heads = 8,
                                   .head_dim = 128,
                                   .head_dim_v = 128,
                                   .page_size = 16,
                                   .q = DType::kBF16,
                                   .kv = DType::kBF16,
                                   .out = DType::kBF16};

TEST(AttentionGrid, RaggedLengthsDependOnTheSeedAlone) {
  for (const int q_len : {1, 8}) {
    const AttentionWorkload workload = ragged_workload(256, q_len, 4096, 7);
    EXPECT_EQ(workload.kv_lens, ragged_workload(256, q_len, 4096, 7).kv_lens);
    EXPECT_NE(workload.kv_lens, ragged_workload(256, q_len, 4096, 8).kv_lens);
    EXPECT_GE(*std::ranges::min_element(workload.kv_lens), q_len);
    EXPECT_LE(*std::ranges::max_element(workload.kv_lens), 4096);
    double total = 0.0;
    for (const int32_t kv_len : workload.kv_lens) total += kv_len;
    EXPECT_NEAR(total / 256.0, 2048.0, 250.0);
    EXPECT_TRUE(workload_key(workload).ragged);
  }
  EXPECT_THAT(ragged_workload(100, 5, 5, 0).kv_lens, Each(5));
}

TEST(AttentionGrid, CountsPagesBytesAndOperations) {
  AttentionWorkload workload = full_workload(Phase::kDecode, 3, 1, 17);
  EXPECT_EQ(num_pages(workload, 16), 6);
  EXPECT_EQ(num_kv_bytes(kShape, workload), 3 * 17 * 4096.0);
  EXPECT_EQ(num_operations(kShape, workload), 3 * 17 * 64 * 512.0);
  workload.kv_lens = {1, 16, 33};
  EXPECT_EQ(num_pages(workload, 16), 5);
  EXPECT_EQ(num_kv_bytes(kShape, workload), 50 * 4096.0);
  // Four queries attend to 1, 2, 3 and 4 positions.
  const AttentionWorkload prompt = full_workload(Phase::kPrefill, 1, 4, 4);
  EXPECT_EQ(num_operations(kShape, prompt), 10 * 64 * 512.0);
}

// A latent cache's values are a part of its keys, so they are read once.
TEST(AttentionGrid, BytesOfALatentCache) {
  AttentionShape shape = kShape;
  shape.num_heads = 16;
  shape.num_kv_heads = 1;
  shape.head_dim = 576;
  shape.head_dim_v = 512;
  shape.is_latent = true;
  const AttentionWorkload workload = full_workload(Phase::kDecode, 3, 1, 17);
  EXPECT_EQ(num_kv_bytes(shape, workload),
            3 * 17 * 576.0 * static_cast<double>(dtype_bytes(shape.kv)));
  EXPECT_EQ(num_operations(shape, workload), 2.0 * 3 * 17 * 16 * (576 + 512));
}

TEST(AttentionGrid, AStepIsKnownByItsLengths) {
  AttentionWorkload workload = full_workload(Phase::kDecode, 4, 1, 1024);
  EXPECT_EQ(workload_key(workload), (DecodeKey{.num_reqs = 4, .max_kv_len = 1024}));
  workload.kv_lens = {1, 900, 1, 1};
  EXPECT_EQ(workload_key(workload), (DecodeKey{.num_reqs = 4, .max_kv_len = 900, .ragged = true}));
  EXPECT_EQ(workload_key(AttentionWorkload()), DecodeKey());
}

auto point_of(const AttentionWorkload& workload) {
  return std::tuple(workload.phase, workload.num_reqs(), workload.q_len, workload.max_kv_len,
                    workload.ragged);
}

TEST(AttentionGrid, TheTuningGridHoldsEveryCellOfTheBenchGrids) {
  const std::vector<AttentionWorkload> tuned = tuning_grid(false);
  EXPECT_THAT(tuned, SizeIs(9 * 8 + 9 * 7 + 4 * (3 * 8 + 3 * 7) + 3));
  std::set<decltype(point_of(tuned[0]))> points;
  for (const AttentionWorkload& workload : tuned) {
    EXPECT_TRUE(points.insert(point_of(workload)).second) << "twice";
    EXPECT_EQ(workload.pool_pages, workload.ragged ? 16'000 : 0);
  }
  for (const BenchGrid grid : {BenchGrid::kSeed, BenchGrid::kStrict, BenchGrid::kOutlier}) {
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

TEST(AttentionGrid, TheTuningGridHasTheQueryLengthsThatAreAskedFor) {
  EXPECT_THAT(tuning_grid(false, std::array{1}), SizeIs(9 * 8 + 9 * 7 + 3));
  const std::vector<AttentionWorkload> longer = tuning_grid(false, std::array{3, 9});
  EXPECT_THAT(longer, SizeIs(2 * (3 * 8 + 3 * 7)));
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
  EXPECT_THAT(tuning_grid(true, std::array{3}), SizeIs(3 + 2)) << "5 does not stand for 3";
  EXPECT_EQ(use_of(tuning_grid(true).back()), (AttentionUse{.phase = Phase::kPrefill}));
}

TEST(AttentionGrid, ABenchGridHasTheRequestedCells) {
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
  const std::vector<AttentionWorkload> cached = bench_grid({.grid = BenchGrid::kPrefill,
                                                            .num_seqs = {1, 2},
                                                            .kv_lens = {512},
                                                            .prefix_lens = {0, 4096}});
  ASSERT_THAT(cached, SizeIs(4));
  EXPECT_THAT(cached[1].kv_lens, Each(512));
  EXPECT_EQ(cached[3].q_len, 512);
  EXPECT_THAT(cached[3].kv_lens, Each(4608));
  EXPECT_THAT(bench_grid({.grid = BenchGrid::kPrefill, .prefix_lens = {0, 64}}), SizeIs(8));
  EXPECT_NE(bench_grid({.seed = 1})[8].kv_lens, bench_grid({.seed = 2})[8].kv_lens);
}

// In the first row xqa is the fastest and auto selects native; in the second row native is the
// fastest; the third row has only xqa, and repeats pages.
AttentionReport make_report() {
  AttentionReport report{.device = "a GPU", .shape = "64:8", .grid = "strict", .peak = 4.8e6};
  report.backends = {"xqa", "native"};
  const auto cell = [](double us) { return AttentionCell{us, 3 * us, 0.5}; };
  report.rows = {{.num_seqs = 1,
                  .max_kv_len = 1024,
                  .work = 4.8e7,
                  .cells = {cell(20), cell(25)},
                  .auto_backend = "native"},
                 {.num_seqs = 4,
                  .max_kv_len = 2048,
                  .work = 9.6e7,
                  .cells = {cell(80), cell(40)},
                  .auto_backend = "native"},
                 {.num_seqs = 8,
                  .max_kv_len = 4096,
                  .work = 9.6e7,
                  .repeats_pages = true,
                  .cells = {cell(40), std::nullopt},
                  .auto_backend = "native"}};
  return report;
}

TEST(AttentionReport, ReportsTheDifferenceOfAutoToTheBest) {
  const AttentionReport report = make_report();
  EXPECT_EQ(report.rows[0].best(), 0U);
  EXPECT_DOUBLE_EQ(report.auto_over_best(report.rows[0]).value_or(0), 1.25);
  EXPECT_DOUBLE_EQ(report.auto_over_best(report.rows[1]).value_or(0), 1.0);
  EXPECT_FALSE(report.auto_over_best(report.rows[2]).has_value());
}

TEST(AttentionReport, SummarizesRowsThatAllServe) {
  const AttentionReport report = make_report();
  const AttentionSummary summary = summarize(report);
  EXPECT_EQ(summary.num_rows, 2U);
  EXPECT_DOUBLE_EQ(summary.geomean_us[0], 40.0);
  EXPECT_DOUBLE_EQ(summary.geomean_us[1], std::sqrt(1000.0));
  EXPECT_DOUBLE_EQ(summary.auto_us, std::sqrt(1000.0));
  EXPECT_DOUBLE_EQ(summary.best_us, std::sqrt(800.0));
  EXPECT_EQ(summary.worst, &report.rows[0]);
  const AttentionReport empty;
  EXPECT_EQ(summarize(empty).num_rows, 0U);
  EXPECT_EQ(summarize(empty).worst, nullptr);
}

TEST(AttentionReport, ATableHasAColumnForEachBackend) {
  const std::string table = to_table(make_report());
  EXPECT_THAT(table, HasSubstr("a GPU: 64:8, grid strict"));
  EXPECT_THAT(table, HasSubstr("peak (4800 GB/s)"));
  EXPECT_THAT(table, HasSubstr("20.00       25.00    2400.0  50.0%  native      +25.0 %\n"));
  EXPECT_THAT(table, HasSubstr("60.00 +- 0.50      75.00 +- 0.50\n"));
  EXPECT_THAT(table, HasSubstr("96.0*       40.00           -"));
  EXPECT_THAT(table, HasSubstr("* pages repeat"));
  EXPECT_THAT(table, HasSubstr("xqa 40.00, native 31.62, auto 31.62, best of each row 28.28; over "
                               "the 2 of 3 rows"));
  EXPECT_THAT(table,
              HasSubstr("+25.0 % at 1 x 1 of 1024, where it selects native and xqa is best"));
}

TEST(AttentionReport, CsvHasEveryNumber) {
  EXPECT_EQ(to_csv(make_report()),
            "# a GPU: 64:8, grid strict\n"
            "num_seqs,max_seq_len,q_len,kv_MB,repeats_pages,xqa_event_us,xqa_event_std_us,"
            "xqa_graph_us,native_event_us,native_event_std_us,native_graph_us,best,best_graph_us,"
            "best_GBps,best_share_of_peak,auto,auto_over_best\n"
            "1,1024,1,48.00,0,60.00,0.50,20.000,75.00,0.50,25.000,xqa,20.000,2400.0,0.5000,native,"
            "1.2500\n"
            "4,2048,1,96.00,0,240.00,0.50,80.000,120.00,0.50,40.000,native,40.000,2400.0,0.5000,"
            "native,1.0000\n"
            "8,4096,1,96.00,1,120.00,0.50,40.000,,,,xqa,40.000,2400.0,0.5000,native,\n");
}

TEST(AttentionReport, JsonReadsBack) {
  const auto document = JsonDocument::parse(to_json(make_report()), "report");
  ASSERT_TRUE(document.ok()) << document.status().message();
  const auto root = document->root();
  EXPECT_EQ(double(root["peak"]), 4800.0);
  EXPECT_EQ(root["rows"].get_array().value().size(), 3U);
  const auto row = root["rows"].at(0);
  EXPECT_EQ(double(row["backends"]["native"]["event_us"]), 75.0);
  EXPECT_EQ(std::string_view(row["best"]), "xqa");
  EXPECT_EQ(double(row["auto_over_best"]), 1.25);
  EXPECT_DOUBLE_EQ(double(root["summary"]["worst_auto_over_best"]), 1.25);
  EXPECT_DOUBLE_EQ(double(root["summary"]["geomean_us"]["xqa"]), 40.0);
}

TEST(AttentionReport, PromptsAreRatedByTheirOperations) {
  AttentionReport report = make_report();
  report.phase = Phase::kPrefill;
  report.peak = 989e6;
  EXPECT_THAT(to_csv(report), HasSubstr("GFLOP"));
  EXPECT_THAT(to_csv(report), HasSubstr("best_TFLOPs"));
  EXPECT_THAT(to_table(report), HasSubstr("peak (989 TFLOP/s)"));
}

}  // namespace
}  // namespace quire::bench
