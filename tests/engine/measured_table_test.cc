#include "start/measured_table.h"

#include <gmock/gmock.h>

#include <fstream>
#include <memory>

#include "attn/fake_backend.h"
#include "base/file.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::PickyBackend;

constexpr AttentionShape kShape = {.num_heads = 8,
                                   .num_kv_heads = 2,
                                   .head_dim = 64,
                                   .head_dim_v = 64,
                                   .page_size = 16,
                                   .q = DType::kBF16,
                                   .kv = DType::kBF16,
                                   .out = DType::kBF16};
const MeasuredSteps kSteps = {.max_num_seqs = 64, .max_num_tokens = 2048, .max_kv_len = 8192};
// Full lengths of 1, 16 and 64 requests and ragged ones of 16 and 64, at two context lengths.
constexpr size_t kNumDecode = 10;

// Two backends compete for decode; prompts have one backend, so nothing is measured for them.
class MeasuredTable : public ::testing::Test {
 protected:
  MeasuredTable() {
    backends_.add(std::make_unique<PickyBackend>("flashinfer", 64, Phase::kDecode));
    backends_.add(std::make_unique<PickyBackend>("xqa", 64, Phase::kDecode));
    backends_.add(std::make_unique<PickyBackend>("native", 64, Phase::kPrefill));
    fs::remove_all(directory_);
  }

  AttentionSelector selector(std::string_view forced = "auto",
                             const AttentionShape& shape = kShape) {
    const std::array q_lens = {1};
    auto made = AttentionSelector::create(backends_, {shape, shape}, {}, {.any = forced},
                                          std::make_shared<TuningTable>(), q_lens);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }
  MeasuredTableConfig config() {
    return {.device = "a GPU",
            .file = file_,
            .steps = kSteps,
            .time_limit = time_limit_,
            .measure = [this](auto backends, const MeasureConfig& config, const auto& on_measured) {
              return fake_measurement(backends, config, on_measured);
            }};
  }
  TuningTable run(const AttentionSelector& selector) {
    return measured_table(std::span(&selector, 1), config());
  }

  fs::path directory_ = fs::path(::testing::TempDir()) / "measured_table_test";
  fs::path file_ = directory_ / "cache" / "times.csv";
  std::chrono::duration<double> time_limit_ = std::chrono::hours(1);
  Status failure_;
  size_t num_measured_ = 0;

 private:
  // xqa takes half as long as flashinfer.
  Status fake_measurement(std::span<AttentionBackend* const> backends, const MeasureConfig& config,
                          const OnMeasured& on_measured) {
    for (size_t i = 0; i < config.workloads.size(); ++i) {
      if (!failure_.ok()) return failure_;
      ++num_measured_;
      MeasuredWorkload measured;
      for (const AttentionBackend* backend : backends) {
        measured.times.push_back(
            {.backend = backend->name(), .graph_us = backend->name() == "xqa" ? 10.0 : 20.0});
      }
      if (!on_measured(i, measured)) break;
    }
    return {};
  }

  BackendSet backends_;
};

TEST_F(MeasuredTable, DecidesAndIsKept) {
  const TuningTable table = run(selector());
  EXPECT_EQ(num_measured_, kNumDecode);
  EXPECT_EQ(table.points().size(), kNumDecode);
  const std::string_view names[] = {"flashinfer", "xqa"};
  EXPECT_EQ(table.best(tuning_point(kShape, Phase::kDecode, 32, 1, 4096), names).candidate, 1U);

  const TuningTable again = run(selector());
  EXPECT_EQ(num_measured_, kNumDecode);  // read from the file
  EXPECT_EQ(again.points().size(), kNumDecode);
}

TEST_F(MeasuredTable, KeepsOtherShapes) {
  run(selector());
  AttentionShape other = kShape;
  other.head_dim = 32;
  EXPECT_EQ(run(selector("auto", other)).points().size(), 2 * kNumDecode);
  run(selector());
  EXPECT_EQ(num_measured_, 2 * kNumDecode);
}

TEST_F(MeasuredTable, TheNextStartContinues) {
  time_limit_ = std::chrono::seconds(0);  // enough for the first batch, and the one after it
  for (size_t start = 1; 2 * start <= kNumDecode; ++start) {
    EXPECT_EQ(run(selector()).points().size(), 2 * start);
  }
  EXPECT_EQ(num_measured_, kNumDecode);
  run(selector());
  EXPECT_EQ(num_measured_, kNumDecode);
}

TEST_F(MeasuredTable, NothingIsMeasuredWithoutAChoice) {
  EXPECT_TRUE(run(selector("xqa")).points().empty());
  EXPECT_EQ(num_measured_, 0U);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(MeasuredTable, ADamagedFileIsMeasuredAnew) {
  fs::create_directories(file_.parent_path());
  std::ofstream(file_) << "decode,fast\n";
  EXPECT_EQ(run(selector()).points().size(), kNumDecode);
  run(selector());
  EXPECT_EQ(num_measured_, kNumDecode);
}

TEST_F(MeasuredTable, WithoutAPlaceEachStartMeasures) {
  file_.clear();
  EXPECT_EQ(run(selector()).points().size(), kNumDecode);
  EXPECT_EQ(run(selector()).points().size(), kNumDecode);
  EXPECT_EQ(num_measured_, 2 * kNumDecode);

  file_ = "/proc/nowhere/times.csv";
  EXPECT_EQ(run(selector()).points().size(), kNumDecode);
}

TEST_F(MeasuredTable, AFailureLeavesTheFirstCandidate) {
  failure_ = resource_exhausted("[cuda] no memory");
  EXPECT_TRUE(run(selector()).points().empty());
  EXPECT_FALSE(fs::exists(file_));
}

TEST(StartWorkloads, StayWithinTheLimits) {
  const MeasuredSteps small = {
      .max_num_seqs = 2, .max_num_tokens = 512, .max_kv_len = 512, .decode_q_lens = {3}};
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    const auto workloads = start_workloads(phase, small);
    ASSERT_EQ(workloads.size(), 1U);
    EXPECT_EQ(workloads[0].num_reqs(), 1);
  }
  EXPECT_EQ(start_workloads(Phase::kDecode, small)[0].q_len, 3);
  MeasuredSteps adaptive = small;
  adaptive.decode_q_lens = {1, 2, 3};
  const auto workloads = start_workloads(Phase::kDecode, adaptive);
  ASSERT_EQ(workloads.size(), 2U) << "the shortest and the longest query";
  EXPECT_EQ(workloads[0].q_len, 1);
  EXPECT_EQ(workloads[1].q_len, 3);
  EXPECT_EQ(start_workloads(Phase::kDecode, kSteps).size(), kNumDecode);
  EXPECT_EQ(start_workloads(Phase::kPrefill, kSteps).size(), 2U);
}

TEST(MeasuredTableFile, NamesDeviceAndDriver) {
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  const fs::path file = measured_table_file("NVIDIA L40S/x", "580.159.04");
  EXPECT_EQ(file.parent_path(), "/cache/quire");
  EXPECT_THAT(file.filename().string(),
              ::testing::MatchesRegex("attention_NVIDIA-L40S-x_580.159.04_[0-9.]+\\.csv"));
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/one", 1);
  EXPECT_EQ(measured_table_file("x", "y").parent_path(), "/home/one/.cache/quire");
  ::unsetenv("HOME");
  EXPECT_TRUE(measured_table_file("x", "y").empty());
}

}  // namespace
}  // namespace quire
