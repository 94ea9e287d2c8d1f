#include "start/measured_table.h"

#include <gmock/gmock.h>

#include <memory>

#include "attn/fake_backend.h"
#include "support/scratch_directory.h"
#include "support/value_of.h"

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
const RunnerSizes kSizes = {.limits = {.max_num_tokens = 2048, .max_model_len = 8192},
                            .max_num_seqs = 64};
// Full lengths of 1, 16 and 64 requests and ragged ones of 16 and 64, at two context lengths.
constexpr size_t kNumDecode = 10;

// Two backends compete for decode; prompts have one backend, so nothing is measured for them.
class MeasuredTable : public ::testing::Test {
 protected:
  MeasuredTable() {
    backends_.add(std::make_unique<PickyBackend>("flashinfer", 64, Phase::kDecode));
    backends_.add(std::make_unique<PickyBackend>("xqa", 64, Phase::kDecode));
    backends_.add(std::make_unique<PickyBackend>("native", 64, Phase::kPrefill));
  }

  AttentionSelector selector(std::string_view forced = "auto",
                             const AttentionShape& shape = kShape) {
    const std::array q_lens = {1};
    return testing::value_of(AttentionSelector::create(
        backends_, {shape, shape}, {}, {.any = forced}, std::make_shared<TuningTable>(), q_lens));
  }
  MeasuredTableConfig config() {
    return {.sizes = kSizes,
            .time_limit = time_limit_,
            .measure = [this](auto backends, const MeasureConfig& config, const auto& on_measured) {
              return fake_measurement(backends, config, on_measured);
            }};
  }
  TuningTable run(const AttentionSelector& selector) {
    MeasuredChoices choices({.file = file_, .build = "a build"});
    TuningTable table = measured_table(std::span(&selector, 1), config(), choices);
    EXPECT_TRUE(choices.keep().ok());
    return table;
  }

  const testing::ScratchDirectory directory_;
  const fs::path file_ = directory_.path() / "choices.tsv";
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

// A backend that serves only the shortest queries is measured at these.
TEST_F(MeasuredTable, HasTheTimesOfABackendForShortQueries) {
  BackendSet backends;
  for (const char* const name : {"flashinfer", "native"}) {
    backends.add(std::make_unique<PickyBackend>(name, 64, Phase::kDecode));
  }
  auto xqa = std::make_unique<PickyBackend>("xqa", 64, Phase::kDecode);
  xqa->max_q_len = 1;
  backends.add(std::move(xqa));
  backends.add(std::make_unique<PickyBackend>("cudnn", 64, Phase::kPrefill));
  const std::array q_lens = {1, 5};
  const AttentionSelector drafting = testing::value_of(AttentionSelector::create(
      backends, {kShape, kShape}, {}, {}, std::make_shared<TuningTable>(), q_lens));
  MeasuredTableConfig longer = config();
  longer.sizes.decode_q_lens = {1, 5};
  MeasuredChoices choices({.file = file_, .build = "a build"});
  const TuningTable table = measured_table(std::span(&drafting, 1), longer, choices);
  EXPECT_EQ(table.points().size(), 2 * kNumDecode);
  for (const TuningTable::MeasuredPoint& measured : table.points()) {
    if (measured.point.q_len > 1) continue;
    EXPECT_NE(measured.find("xqa"), nullptr);
  }
}

// The file is intact, but another program may have written it.
TEST_F(MeasuredTable, AMalformedTimeIsMeasuredAgain) {
  MeasuredChoices choices({.file = file_, .build = "a build"});
  choices.add(ChoiceKind::kAttention, "decode,fast", "1.0");
  const AttentionSelector own = selector();
  const TuningTable table = measured_table(std::span(&own, 1), config(), choices);
  EXPECT_EQ(table.points().size(), kNumDecode);
}

TEST_F(MeasuredTable, AFailureLeavesTheFirstCandidate) {
  failure_ = resource_exhausted("[cuda] no memory");
  EXPECT_TRUE(run(selector()).points().empty());
  EXPECT_FALSE(fs::exists(file_));
}

TEST(StartWorkloads, StayWithinTheLimits) {
  const RunnerSizes small = {.limits = {.max_num_tokens = 512, .max_model_len = 512},
                             .max_num_seqs = 2,
                             .decode_q_lens = {3}};
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    const auto workloads = start_workloads(phase, small);
    ASSERT_EQ(workloads.size(), 1U);
    EXPECT_EQ(workloads[0].num_reqs(), 1);
  }
  EXPECT_EQ(start_workloads(Phase::kDecode, small)[0].q_len, 3);
  RunnerSizes adaptive = small;
  adaptive.decode_q_lens = {1, 2, 3};
  const auto workloads = start_workloads(Phase::kDecode, adaptive);
  ASSERT_EQ(workloads.size(), 2U) << "the shortest and the longest query";
  EXPECT_EQ(workloads[0].q_len, 1);
  EXPECT_EQ(workloads[1].q_len, 3);
  EXPECT_EQ(start_workloads(Phase::kDecode, kSizes).size(), kNumDecode);
  EXPECT_EQ(start_workloads(Phase::kPrefill, kSizes).size(), 2U);
}

}  // namespace
}  // namespace quire
