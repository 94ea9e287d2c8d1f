#include "cli/bench_attention_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"

namespace quire::cli {
namespace {

using ::testing::HasSubstr;

// xqa is best in the first row, where auto takes native; native in the second; the third has xqa
// alone, and repeats pages.
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

TEST(AttentionReport, SaysHowFarAutoIsOff) {
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
  EXPECT_THAT(table, HasSubstr("* the memory does not hold"));
  EXPECT_THAT(table, HasSubstr("xqa 40.00, native 31.62, auto 31.62, best of each row 28.28; over "
                               "the 2 of 3 rows"));
  EXPECT_THAT(table, HasSubstr("+25.0 % at 1 x 1 of 1024, where it takes native and xqa is best"));
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
}  // namespace quire::cli
