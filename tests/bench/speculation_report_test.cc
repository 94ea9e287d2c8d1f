#include "bench/speculation_report.h"

#include <gmock/gmock.h>

namespace quire::bench {
namespace {

using ::testing::HasSubstr;

// Metrics of vLLM: one series per engine, and the times at which counters were created.
constexpr std::string_view kMetrics = R"(# HELP vllm:spec_decode_num_drafts_total Number of drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="a b"} 100.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="a b"} 1.2e+02
vllm:spec_decode_num_drafts_created{engine="0",model_name="a b"} 1.7e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="a b"} 660.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="a b"} 330
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 200.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 120.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="1"} 10.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="40"} 7.0
vllm:num_requests_running 3)";

TEST(ParseSpeculation, AddsUpTheSeriesOfEachCounter) {
  const auto drafts = parse_speculation(kMetrics);
  ASSERT_TRUE(drafts);
  EXPECT_EQ(drafts->stats.num_spans, 220);
  EXPECT_EQ(drafts->stats.num_drafts, 660);
  EXPECT_EQ(drafts->stats.num_accepted, 330);
  EXPECT_EQ(drafts->stats.accepted_by_position[0], 200);
  EXPECT_EQ(drafts->stats.accepted_by_position[1], 130);
  EXPECT_FALSE(drafts->has_synthetic_acceptance);
  EXPECT_EQ(draft_line(*drafts),
            "Drafts: 330 of 660 accepted; mean accepted length 2.50; by position 0.91 0.59\n");
}

TEST(ParseSpeculation, FindsNothingOnAServerWithoutCounters) {
  for (const char* text :
       {"", "\n", "<html>not found</html>", "vllm:num_requests_running 3\n",
        "# TYPE vllm:spec_decode_num_drafts_total counter\n", "vllm:spec_decode_num_drafts_total\n",
        "vllm:spec_decode_num_drafts_total NaN\n", "vllm:spec_decode_num_drafts_total{a=\"\n"}) {
    EXPECT_FALSE(parse_speculation(text)) << text;
  }
}

TEST(ParseSpeculation, SeesThatAcceptanceIsSynthetic) {
  const auto drafts = parse_speculation(
      "quire_spec_decode_synthetic_acceptance{engine=\"0\"} 1\n"
      "vllm:spec_decode_num_drafts_total{engine=\"0\"} 2\n");
  ASSERT_TRUE(drafts);
  EXPECT_TRUE(drafts->has_synthetic_acceptance);
  EXPECT_THAT(draft_line(*drafts), HasSubstr("Drafts (synthetic acceptance: the outputs have no "));
}

TEST(SpeculationReport, IsADifference) {
  MeasuredSpeculation after = parse_speculation(kMetrics).value();
  SpeculationStats before = {.num_spans = 120, .num_drafts = 360, .num_accepted = 180};
  before.accepted_by_position[0] = 100;
  add(after.stats, before, -1);
  JsonWriter json;
  json.begin_object();
  write_speculation(json, after);
  json.end_object();
  EXPECT_EQ(json.text(),
            R"({"speculation":{"synthetic_acceptance":false,"num_drafts":100,)"
            R"("num_draft_tokens":300,"num_accepted_tokens":150,"mean_accepted_length":2.5,)"
            R"("acceptance_by_position":[1,1.3]}})");
}

TEST(SpeculationReport, HasTheTimesThatQuireCounts) {
  MeasuredSpeculation drafts = parse_speculation(
                                   "vllm:spec_decode_num_drafts_total 0\n"
                                   "quire_spec_decode_draft_seconds_total 0.25\n"
                                   "quire_spec_decode_verify_seconds_total{engine=\"0\"} 1.5\n")
                                   .value();
  EXPECT_EQ(draft_line(drafts),
            "Drafts: none was verified; drafter 0.250 s, model and sampling 1.500 s\n");
  drafts.stats.num_spans = 2;
  drafts.stats.num_drafts = 4;
  EXPECT_EQ(
      draft_line(drafts),
      "Drafts: 0 of 4 accepted; mean accepted length 1.00; by position 0.00; drafter 0.250 s, "
      "model and sampling 1.500 s\n");
  JsonWriter json;
  json.begin_object();
  write_speculation(json, drafts);
  json.end_object();
  EXPECT_THAT(json.text(), HasSubstr(R"("draft_seconds":0.25,"verify_seconds":1.5,)"));
}

TEST(SpeculationReport, IsEmptyWithoutSpeculation) {
  MeasuredSpeculation none;
  for (const int64_t num_groups : {0, -5}) {  // fewer than before: the server was restarted
    none.stats.num_spans = num_groups;
    JsonWriter json;
    json.begin_object();
    write_speculation(json, none);
    json.end_object();
    EXPECT_EQ(json.text(), "{}");
    EXPECT_EQ(draft_line(none), "");
  }
}

}  // namespace
}  // namespace quire::bench
