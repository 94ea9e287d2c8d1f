// Attention backends that the engine selects and reports when it starts on a CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/tiny_engine.h"
#include "start/plan.h"
#include "start/platform_choice.h"
#include "start/report.h"
#include "support/scratch_directory.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::tiny_config;

class AttentionReport : public ::testing::Test {
 protected:
  Result<EnginePlan> plan(const EngineConfig& config) {
    const auto files = testing::value_of(open_model_files(config));
    platform_ = testing::value_of(make_platform(config, files));
    return plan_engine(config, files, *platform_);
  }

  static EngineConfig config_of(const std::string& forced = "auto") {
    EngineConfig config = tiny_config();
    config.device = "cpu";
    config.max_num_seqs = 8;
    config.attention_backend = forced;
    return config;
  }
  std::string file_of(const std::string& text) const { return scratch_.write("table.csv", text); }

  const testing::ScratchDirectory scratch_;
  std::unique_ptr<Platform> platform_;
};

TEST_F(AttentionReport, ReportsTheBackendsAndWhy) {
  const auto plan = testing::value_of(this->plan(config_of()));
  EXPECT_EQ(report_attention(plan.target.attention).backends, "decode: cpu, prefill: cpu");
  EXPECT_THAT(report_attention(plan.target.attention).summary,
              ElementsAre("decode of up to 512 tokens: cpu", "prefill: cpu"));
  EXPECT_THAT(report_attention(plan.target.attention).details,
              ElementsAre("decode of 1-8 up to 512: cpu", "prefill: cpu"));
}

TEST_F(AttentionReport, NamesTheFlagThatForces) {
  EngineConfig config = config_of("cpu");
  config.decode_attention_backend = "reference";
  const auto plan = testing::value_of(this->plan(config));
  EXPECT_THAT(report_attention(plan.target.attention).summary,
              ElementsAre("decode of up to 512 tokens: reference (forced by "
                          "`decode_attention_backend`)",
                          "prefill: cpu (forced by `attention_backend`)"));
}

TEST_F(AttentionReport, ATableOfAnotherDeviceChangesNothing) {
  EngineConfig config = config_of();
  TuningRow row;
  row.point = tuning_point({.num_heads = 32, .num_kv_heads = 8, .head_dim = 128, .page_size = 16},
                           Phase::kDecode, 64, 1, 4096);
  row.backend = "xqa";
  row.us = 71.25;
  config.tuning_table = file_of(to_csv(std::vector{row}));
  const auto plan = testing::value_of(this->plan(config));
  EXPECT_EQ(report_attention(plan.target.attention).backends, "decode: cpu, prefill: cpu");
}

TEST_F(AttentionReport, ABadTableIsRefusedWithFlagAndFile) {
  EngineConfig config = config_of();
  for (const std::string& path : {file_of("decode,fast\n"), std::string("/nonexistent.csv")}) {
    config.tuning_table = path;
    const auto plan = this->plan(config);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("tuning_table"), HasSubstr(path)));
  }
}

}  // namespace
}  // namespace quire
