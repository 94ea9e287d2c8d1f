#include "attn/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "attn/fake_backend.h"

namespace quire {
namespace {

using quire::testing::PickyBackend;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr AttentionShape kShape = {.num_heads = 32, .num_kv_heads = 8, .head_dim = 128};

class SelectorTest : public ::testing::Test {
 protected:
  SelectorTest() {
    set_.add(std::make_unique<PickyBackend>("flashinfer", 64, Phase::kDecode, 100));
    set_.add(std::make_unique<PickyBackend>("xqa", 64, Phase::kDecode, 300));
    set_.add(std::make_unique<PickyBackend>("cudnn", 8, Phase::kDecode, 900));
    set_.add(std::make_unique<PickyBackend>("native", 64, Phase::kPrefill, 200));
    const auto row = [](int num_reqs, int kv_len, std::string backend, double us) {
      return TuningRow{tuning_point(kShape, Phase::kDecode, num_reqs, 1, kv_len),
                       std::move(backend), us};
    };
    const std::vector<TuningRow> rows = {row(1, 1024, "xqa", 5),   row(1, 1024, "flashinfer", 7),
                                         row(64, 1024, "xqa", 30), row(64, 1024, "flashinfer", 20),
                                         row(1, 16384, "xqa", 50), row(64, 16384, "xqa", 400),
                                         row(64, 1024, "cudnn", 1)};
    table_ = std::make_shared<TuningTable>(rows);
  }
  Result<AttentionSelector> create(std::string_view decode, std::string_view prefill) {
    return create({.decode = decode, .prefill = prefill});
  }
  Result<AttentionSelector> create(const BackendWishes& wishes) {
    return AttentionSelector::create(set_, kShape, Device(), wishes, table_);
  }

  BackendSet set_;
  std::shared_ptr<const TuningTable> table_;
};

TEST_F(SelectorTest, TheTableDecidesAmongThoseThatServe) {
  const auto selector = create("auto", "auto");
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  EXPECT_THAT(selector->candidates(Phase::kDecode), SizeIs(2));
  EXPECT_EQ(selector->decode({1, 1024}, 1)->name(), "xqa");
  EXPECT_EQ(selector->decode({64, 1024}, 1)->name(), "flashinfer");
  EXPECT_EQ(selector->decode({64, 16384}, 1)->name(), "xqa");
  EXPECT_EQ(selector->decode({0, 0}, 0)->name(), "xqa");
  EXPECT_EQ(selector->prefill(0, 0, 0)->name(), "native");
  EXPECT_EQ(selector->workspace_bytes({}), 300U);
}

// xqa is the fastest at 1 x 1024 as long as it may be.
TEST_F(SelectorTest, WhoCannotTakeAStepIsPassedOver) {
  const auto selector = create("auto", "auto");
  const auto forced = create("xqa", "auto");
  ASSERT_TRUE(selector.ok() && forced.ok());
  auto& xqa = dynamic_cast<PickyBackend&>(*forced->decode({1, 1024}));
  const DecodeKey eager = {.num_reqs = 1, .max_kv_len = 1024, .eager = true};
  EXPECT_EQ(selector->decode(eager, 8)->name(), "xqa");
  EXPECT_EQ(selector->decode({1, 1024}, 9)->name(), "flashinfer");
  xqa.is_slow_to_plan = true;
  EXPECT_EQ(selector->decode({1, 1024})->name(), "xqa");
  EXPECT_EQ(selector->decode(eager)->name(), "flashinfer");
  const auto services = selector->decode_services({&eager, 1});
  EXPECT_EQ(services[0].reason, "the only one that serves this shape");
  // Forced, it is never replaced in silence.
  EXPECT_EQ(forced->decode(eager)->name(), "xqa");
  EXPECT_EQ(forced->decode({1, 1024}, 9)->name(), "xqa");
}

TEST_F(SelectorTest, AForcedBackendServesEverything) {
  const auto selector = create("flashinfer", "native");
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  EXPECT_THAT(selector->candidates(Phase::kDecode), SizeIs(1));
  for (const int num_reqs : {1, 64}) {
    EXPECT_EQ(selector->decode({num_reqs, 16384}, 1)->name(), "flashinfer");
  }
  EXPECT_EQ(selector->workspace_bytes({}), 200U);
  const DecodeKey keys[] = {{1, 1024}, {64, 1024}};
  const auto services = selector->decode_services(keys);
  ASSERT_THAT(services, SizeIs(1));
  EXPECT_EQ(services[0].reason, "forced by --decode-attention-backend");
}

TEST_F(SelectorTest, RaggedLengthsAreMeasuredApart) {
  const std::vector<TuningRow> rows = {
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024), "xqa", 5},
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024), "flashinfer", 6},
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024, true), "xqa", 4},
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024, true), "flashinfer", 3}};
  table_ = std::make_shared<TuningTable>(rows);
  const auto selector = create("auto", "auto");
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  EXPECT_EQ(selector->decode({64, 1024})->name(), "xqa");
  EXPECT_EQ(selector->decode({64, 1024, true})->name(), "flashinfer");
  EXPECT_EQ(selector->decode({1, 131072, true})->name(), "flashinfer");
  const DecodeKey keys[] = {{1, 1024}, {64, 1024}, {1, 1024, true}, {64, 1024, true}};
  const auto services = selector->decode_services(keys);
  ASSERT_THAT(services, SizeIs(2));
  EXPECT_FALSE(services[0].ragged);
  EXPECT_TRUE(services[1].ragged);
  EXPECT_EQ(services[1].reason,
            "measured at 64 x 1 of ragged 1024, heads 32:8 of 128: flashinfer 3.0 us, xqa 4.0 us");
}

TEST(IsRagged, WhereTheMeanIsBelowThreeQuartersOfTheLongest) {
  const auto of = [](std::vector<int32_t> bounds) { return is_ragged(bounds); };
  EXPECT_FALSE(of({}));
  EXPECT_FALSE(of({0, 0}));
  EXPECT_FALSE(of({5}));
  EXPECT_FALSE(of({100, 50}));  // 3/4 itself
  EXPECT_TRUE(of({100, 49}));
  EXPECT_TRUE(of({1, 1, 1, 1 << 24}));
  EXPECT_FALSE(of(std::vector<int32_t>(1 << 16, std::numeric_limits<int32_t>::max())));
}

TEST_F(SelectorTest, AWishForBothPhasesLeavesToAutoWhatItCannotServe) {
  const auto selector = create({.any = "xqa"});
  ASSERT_TRUE(selector.ok()) << selector.status().message();
  EXPECT_THAT(selector->candidates(Phase::kDecode), SizeIs(1));
  EXPECT_EQ(selector->decode({64, 1024})->name(), "xqa");
  EXPECT_EQ(selector->prefill(1, 512, 512)->name(), "native");
  EXPECT_THAT(selector->remarks(),
              ElementsAre("--attention-backend xqa cannot serve prefill: a) wrong phase. So auto "
                          "chooses who does."));
  const DecodeKey keys[] = {{1, 1024}};
  EXPECT_EQ(selector->decode_services(keys)[0].reason, "forced by --attention-backend");
  EXPECT_EQ(selector->prefill_services()[0].reason, "the only one that serves this shape");

  const auto prefill = create({.any = "native"});
  ASSERT_TRUE(prefill.ok()) << prefill.status().message();
  EXPECT_THAT(prefill->candidates(Phase::kDecode), SizeIs(2));
  EXPECT_THAT(prefill->remarks(), SizeIs(1));
  EXPECT_THAT(create({})->remarks(), SizeIs(0));
}

TEST_F(SelectorTest, AWishThatNoPhaseComesOfIsRefused) {
  // Eight heads at most: neither phase.
  EXPECT_THAT(create({.any = "cudnn"}).status().message(),
              HasSubstr("--attention-backend cudnn cannot serve decode: a) too many heads."));
  // The one phase that is left to it is the one it cannot serve.
  EXPECT_THAT(create({.any = "xqa", .decode = "flashinfer"}).status().message(),
              HasSubstr("--attention-backend xqa cannot serve prefill: a) wrong phase."));
  const auto both = create({.any = "xqa", .prefill = "native"});
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->decode({1, 1024})->name(), "xqa");
  EXPECT_THAT(both->remarks(), SizeIs(0));
  EXPECT_EQ(create({.any = "nonsense"}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SelectorTest, TellsWhoWantsToKnowOfTheGraphsThatItServes) {
  auto selector = create("auto", "auto");
  ASSERT_TRUE(selector.ok());
  const std::vector<DecodeKey> keys = {
      {1, 1024},  {2, 1024},   {64, 1024},
      {1, 16384}, {64, 16384}, {.num_reqs = 8, .max_kv_len = 1024, .eager = true}};
  auto& xqa = dynamic_cast<PickyBackend&>(*selector->decode({1, 1024}));
  auto& flashinfer = dynamic_cast<PickyBackend&>(*selector->decode({64, 1024}));
  ASSERT_TRUE(selector->prepare({.max_num_reqs = 64}, keys).ok());
  EXPECT_THAT(xqa.prepared_sizes, SizeIs(0));
  xqa.is_slow_to_plan = flashinfer.is_slow_to_plan = true;
  ASSERT_TRUE(selector->prepare({.max_num_reqs = 64}, keys).ok());
  EXPECT_THAT(xqa.prepared_sizes, ElementsAre(1, 2, 64));
  EXPECT_THAT(flashinfer.prepared_sizes, ElementsAre(64));
  EXPECT_THAT(selector->remarks(), SizeIs(0));
}

TEST_F(SelectorTest, WhoCannotPrepareIsLeftOutOrRefused) {
  auto selector = create("auto", "auto");
  auto forced = create("xqa", "auto");
  ASSERT_TRUE(selector.ok() && forced.ok());
  auto& xqa = dynamic_cast<PickyBackend&>(*forced->decode({1, 1024}));
  xqa.prepared = internal_error("[xqa] nothing is there");
  ASSERT_TRUE(selector->prepare({}, {}).ok());
  EXPECT_EQ(selector->decode({1, 1024})->name(), "flashinfer");
  EXPECT_THAT(selector->remarks(),
              ElementsAre("xqa is left out of decode: [xqa] nothing is there"));
  EXPECT_EQ(forced->prepare({}, {}).message(), "[xqa] nothing is there");
}

TEST_F(SelectorTest, RefusesAsTheSetDoes) {
  EXPECT_EQ(create("cudnn", "auto").status().message(),
            "[attention] --decode-attention-backend cudnn cannot serve decode: a) too many heads.");
  EXPECT_THAT(create("auto", "nonsense").status().message(),
              HasSubstr("--prefill-attention-backend names no backend of this build"));
}

TEST_F(SelectorTest, SaysWhoServesWhatAndWhy) {
  const auto selector = create("auto", "auto");
  ASSERT_TRUE(selector.ok());
  const DecodeKey keys[] = {{1, 1024}, {2, 1024}, {64, 1024}, {1, 16384}, {64, 16384}};
  const auto services = selector->decode_services(keys);
  ASSERT_THAT(services, SizeIs(3));
  EXPECT_EQ(services[0].backend, "xqa");
  EXPECT_EQ(services[0].min_size, 1);
  EXPECT_EQ(services[0].max_size, 2);
  EXPECT_EQ(services[0].max_kv_len, 1024);
  EXPECT_EQ(services[0].reason,
            "measured at 1 x 1 of full 1024, heads 32:8 of 128: flashinfer 7.0 us, xqa 5.0 us");
  EXPECT_EQ(services[1].backend, "flashinfer");
  EXPECT_EQ(services[2].max_size, 64);
  const auto prefill = selector->prefill_services();
  ASSERT_THAT(prefill, SizeIs(1));
  EXPECT_EQ(prefill[0].reason, "the only one that serves this shape");
}

TEST_F(SelectorTest, WithoutATableTheFirstServes) {
  table_ = std::make_shared<TuningTable>();
  const auto selector = create("auto", "auto");
  ASSERT_TRUE(selector.ok());
  EXPECT_EQ(selector->decode({1, 1024}, 1)->name(), "flashinfer");
  const DecodeKey keys[] = {{1, 1024}};
  EXPECT_THAT(selector->decode_services(keys)[0].reason, HasSubstr("nothing is measured"));
}

}  // namespace
}  // namespace quire
