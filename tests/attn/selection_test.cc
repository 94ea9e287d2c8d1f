#include "attn/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <stdexcept>

#include "attn/fake_backend.h"
#include "support/value_of.h"

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
  Result<AttentionSelector> create(const BackendPreference& preference,
                                   const std::vector<int>& q_lens = {1}) {
    return AttentionSelector::create(set_, {kShape, kShape}, Device(), preference, table_, q_lens);
  }
  PickyBackend& backend(std::string_view name) {
    for (const auto& backend : set_.all()) {
      if (backend->name() == name) return dynamic_cast<PickyBackend&>(*backend);
    }
    throw std::out_of_range(std::string(name));
  }

  BackendSet set_;
  std::shared_ptr<const TuningTable> table_;
};

TEST_F(SelectorTest, TheTableDecidesAmongThoseThatServe) {
  const auto selector = testing::value_of(create("auto", "auto"));
  EXPECT_THAT(selector.candidates({}), SizeIs(2));
  EXPECT_EQ(selector.decode({1, 1024})->name(), "xqa");
  EXPECT_EQ(selector.decode({64, 1024})->name(), "flashinfer");
  EXPECT_EQ(selector.decode({64, 16384})->name(), "xqa");
  EXPECT_EQ(selector.decode({0, 0})->name(), "xqa");
  EXPECT_EQ(selector.prefill(0, 0, 0)->name(), "native");
}

// xqa is the fastest at 1 x 1024 wherever it serves.
TEST_F(SelectorTest, ABackendThatCannotTakeAStepIsPassedOver) {
  backend("xqa").max_q_len = 4;
  const auto selector = testing::value_of(create({}, {1, 4, 5}));
  const auto decode = [&](int q_len, bool eager) {
    return selector.decode({.num_reqs = 1, .max_kv_len = 1024, .eager = eager, .q_len = q_len})
        ->name();
  };
  for (const bool eager : {false, true}) {
    EXPECT_EQ(decode(1, eager), "xqa");
    EXPECT_EQ(decode(3, eager), "xqa");
    EXPECT_EQ(decode(5, eager), "flashinfer");
  }
  EXPECT_THAT(selector.remarks(), SizeIs(0));
  EXPECT_DEATH(decode(6, true), "more query tokens than selection was made for");
}

TEST_F(SelectorTest, ABackendForGraphsServesOtherStepsOnlyWhereAFlagNamesIt) {
  backend("xqa").is_for_graphs = true;
  const auto selector = create("auto", "auto");
  const auto forced = create("xqa", "auto");
  ASSERT_TRUE(selector.ok() && forced.ok());
  const DecodeKey eager = {.num_reqs = 1, .max_kv_len = 1024, .eager = true};
  EXPECT_EQ(selector->decode({1, 1024})->name(), "xqa");
  EXPECT_EQ(selector->decode(eager)->name(), "flashinfer");
  EXPECT_EQ(selector->decode_services({&eager, 1})[0].reason,
            "the only backend that serves this shape");
  // A backend that a flag forces is never replaced silently.
  EXPECT_EQ(forced->decode(eager)->name(), "xqa");
}

TEST_F(SelectorTest, AForcedBackendServesTheQueryLengthsThatItCan) {
  backend("xqa").max_q_len = 1;
  const auto selector = testing::value_of(create({.any = "xqa"}, {1, 5}));
  EXPECT_EQ(selector.decode({64, 1024})->name(), "xqa");
  EXPECT_EQ(selector.decode({.num_reqs = 1, .max_kv_len = 1024, .q_len = 5})->name(), "flashinfer");
  EXPECT_THAT(selector.remarks(),
              ElementsAre("`attention_backend` xqa cannot serve decode of 5 query tokens: a) too "
                          "many query tokens. So auto selects another.",
                          "`attention_backend` xqa cannot serve prefill: a) wrong phase. So auto "
                          "selects another."));
  EXPECT_EQ(create({.decode = "xqa"}, {1, 5}).status().message(),
            "[attention] `decode_attention_backend` xqa cannot serve decode of 5 query tokens: a) "
            "too many query tokens.");
}

// The selector asks about each phase with that phase's own shape.
TEST_F(SelectorTest, ThePhasesHaveTheirOwnShapes) {
  AttentionShape narrow = kShape;
  narrow.num_heads = 8;
  const auto selector = testing::value_of(
      AttentionSelector::create(set_, {narrow, kShape}, Device(), {}, table_, std::array{1}));
  EXPECT_THAT(selector.candidates({}), SizeIs(3));  // cudnn serves 8 heads
  EXPECT_EQ(selector.shape(Phase::kDecode), narrow);
  EXPECT_EQ(selector.shape(Phase::kPrefill), kShape);
  AttentionShape wide = kShape;
  wide.num_heads = 128;
  EXPECT_THAT(AttentionSelector::create(set_, {kShape, wide}, Device(), {}, table_, std::array{1})
                  .status()
                  .message(),
              HasSubstr("no backend can serve prefill"));
}

TEST_F(SelectorTest, AForcedBackendServesEverything) {
  const auto selector = testing::value_of(create("flashinfer", "native"));
  EXPECT_THAT(selector.candidates({}), SizeIs(1));
  for (const int num_reqs : {1, 64}) {
    EXPECT_EQ(selector.decode({num_reqs, 16384})->name(), "flashinfer");
  }
  const DecodeKey keys[] = {{1, 1024}, {64, 1024}};
  const auto services = selector.decode_services(keys);
  ASSERT_THAT(services, SizeIs(1));
  EXPECT_EQ(services[0].reason, "forced by `decode_attention_backend`");
}

TEST_F(SelectorTest, RaggedLengthsAreMeasuredApart) {
  const std::vector<TuningRow> rows = {
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024), "xqa", 5},
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024), "flashinfer", 6},
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024, true), "xqa", 4},
      {tuning_point(kShape, Phase::kDecode, 64, 1, 1024, true), "flashinfer", 3}};
  table_ = std::make_shared<TuningTable>(rows);
  const auto selector = testing::value_of(create("auto", "auto"));
  EXPECT_EQ(selector.decode({64, 1024})->name(), "xqa");
  EXPECT_EQ(selector.decode({64, 1024, true})->name(), "flashinfer");
  EXPECT_EQ(selector.decode({1, 131072, true})->name(), "flashinfer");
  const DecodeKey keys[] = {{1, 1024}, {64, 1024}, {1, 1024, true}, {64, 1024, true}};
  const auto services = selector.decode_services(keys);
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
  EXPECT_FALSE(of({100, 50}));  // exactly 3/4
  EXPECT_TRUE(of({100, 49}));
  EXPECT_TRUE(of({1, 1, 1, 1 << 24}));
  EXPECT_FALSE(of(std::vector<int32_t>(1 << 16, std::numeric_limits<int32_t>::max())));
}

TEST_F(SelectorTest, ABackendForBothPhasesLeavesUnservedPhasesToAuto) {
  const auto selector = testing::value_of(create({.any = "xqa"}));
  EXPECT_THAT(selector.candidates({}), SizeIs(1));
  EXPECT_EQ(selector.decode({64, 1024})->name(), "xqa");
  EXPECT_EQ(selector.prefill(1, 512, 512)->name(), "native");
  EXPECT_THAT(selector.remarks(),
              ElementsAre("`attention_backend` xqa cannot serve prefill: a) wrong phase. So auto "
                          "selects another."));
  const DecodeKey keys[] = {{1, 1024}};
  EXPECT_EQ(selector.decode_services(keys)[0].reason, "forced by `attention_backend`");
  EXPECT_EQ(selector.prefill_services()[0].reason, "the only backend that serves this shape");

  const auto prefill = testing::value_of(create({.any = "native"}));
  EXPECT_THAT(prefill.candidates({}), SizeIs(2));
  EXPECT_THAT(prefill.remarks(), SizeIs(1));
  EXPECT_THAT(create({})->remarks(), SizeIs(0));
}

TEST_F(SelectorTest, APreferenceThatServesNothingIsRefused) {
  // cudnn serves at most eight heads, so it can serve neither phase.
  EXPECT_THAT(create({.any = "cudnn"}).status().message(),
              HasSubstr("`attention_backend` cudnn cannot serve decode: a) too many heads."));
  // The flag for decode leaves only prefill to xqa, which cannot serve it.
  EXPECT_THAT(create({.any = "xqa", .decode = "flashinfer"}).status().message(),
              HasSubstr("`attention_backend` xqa cannot serve prefill: a) wrong phase."));
  const auto both = testing::value_of(create({.any = "xqa", .prefill = "native"}));
  EXPECT_EQ(both.decode({1, 1024})->name(), "xqa");
  EXPECT_THAT(both.remarks(), SizeIs(0));
  EXPECT_EQ(create({.any = "nonsense"}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SelectorTest, SaysWhyOnlyASlowBackendServes) {
  backend("xqa").is_for_graphs = true;
  EXPECT_THAT(create({})->remarks(), SizeIs(0));  // flashinfer serves too
  backend("flashinfer").is_causal = true;
  AttentionShape shape = kShape;
  shape.causal = false;
  const auto create_for = [&](const BackendPreference& preference) {
    return testing::value_of(AttentionSelector::create(set_, {shape, kShape}, Device(), preference,
                                                       table_, std::array{1, 5}));
  };
  EXPECT_THAT(
      create_for({}).remarks(),
      ElementsAre("xqa serves decode, which is slow: a) slow outside of graphs. Others "
                  "cannot: flashinfer: a) not causal. | cudnn: a) too many heads. | native: "
                  "a) wrong phase."));
  EXPECT_THAT(create_for({.decode = "xqa"}).remarks(), SizeIs(0));
}

TEST_F(SelectorTest, RefusesAsTheSetDoes) {
  EXPECT_EQ(create("cudnn", "auto").status().message(),
            "[attention] `decode_attention_backend` cudnn cannot serve decode: a) too many heads.");
  EXPECT_THAT(create("auto", "nonsense").status().message(),
              HasSubstr("`prefill_attention_backend`: must be one of auto, "));
}

TEST_F(SelectorTest, ReportsWhichBackendServesWhichStepsAndWhy) {
  const auto selector = testing::value_of(create("auto", "auto"));
  const DecodeKey keys[] = {{1, 1024}, {2, 1024}, {64, 1024}, {1, 16384}, {64, 16384}};
  const auto services = selector.decode_services(keys);
  ASSERT_THAT(services, SizeIs(3));
  EXPECT_EQ(services[0].backend, "xqa");
  EXPECT_EQ(services[0].min_size, 1);
  EXPECT_EQ(services[0].max_size, 2);
  EXPECT_EQ(services[0].max_kv_len, 1024);
  EXPECT_EQ(services[0].reason,
            "measured at 1 x 1 of full 1024, heads 32:8 of 128: flashinfer 7.0 us, xqa 5.0 us");
  EXPECT_EQ(services[1].backend, "flashinfer");
  EXPECT_EQ(services[2].max_size, 64);
  const auto prefill = selector.prefill_services();
  ASSERT_THAT(prefill, SizeIs(1));
  EXPECT_EQ(prefill[0].reason, "the only backend that serves this shape");
}

TEST_F(SelectorTest, ListsTheQueryLengthsApart) {
  backend("xqa").max_q_len = 1;
  const auto selector = testing::value_of(create({}, {1, 5}));
  const DecodeKey keys[] = {{1, 16384},
                            {64, 16384},
                            {.num_reqs = 1, .max_kv_len = 16384, .q_len = 5},
                            {.num_reqs = 64, .max_kv_len = 16384, .q_len = 5}};
  const auto services = selector.decode_services(keys);
  ASSERT_THAT(services, SizeIs(2));
  EXPECT_EQ(services[0].backend, "xqa");
  EXPECT_EQ(services[0].q_len, 1);
  EXPECT_EQ(services[1].backend, "flashinfer");
  EXPECT_EQ(services[1].q_len, 5);
  EXPECT_EQ(services[1].max_size, 64);
}

TEST(DecodeKeys, FollowFromTheDecodeRange) {
  const std::vector<int32_t> bounds = {900, 100, 100, 5000};
  AttentionBatch batch;
  batch.decode = {.num_reqs = 3, .num_tokens = 15, .max_q_len = 5, .max_kv_len = 900};
  batch.kv_len_bound = bounds;
  const DecodeKey key = {.num_reqs = 3, .max_kv_len = 900, .ragged = true, .q_len = 5};
  EXPECT_EQ(decode_key(batch), key);
  EXPECT_EQ(decode_key(AttentionBatch()), DecodeKey());
}

TEST_F(SelectorTest, WithoutATableTheFirstServes) {
  table_ = std::make_shared<TuningTable>();
  const auto selector = testing::value_of(create("auto", "auto"));
  EXPECT_EQ(selector.decode({1, 1024})->name(), "flashinfer");
  const DecodeKey keys[] = {{1, 1024}};
  EXPECT_THAT(selector.decode_services(keys)[0].reason, HasSubstr("not measured"));
}

}  // namespace

namespace {

using quire::testing::PickyBackend;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class BackendSetTest : public ::testing::Test {
 protected:
  BackendSetTest() {
    set_.add(std::make_unique<PickyBackend>("small", 4, Phase::kDecode));
    set_.add(std::make_unique<PickyBackend>("large", 64, Phase::kDecode));
  }
  std::string choose(int num_heads, Phase phase, std::string_view name) {
    return choose(num_heads, phase, BackendPreference{.any = name});
  }
  std::string choose(int num_heads, Phase phase, const BackendPreference& preference) {
    const auto chosen =
        set_.select({.num_heads = num_heads}, {.phase = phase}, Device(), preference);
    if (chosen.ok()) return std::string(chosen.value()[0]->name());
    EXPECT_EQ(chosen.status().code(), StatusCode::kInvalidArgument);
    return chosen.status().message();
  }

  BackendSet set_;
};

TEST_F(BackendSetTest, AutoSelectsTheFirstThatServes) {
  EXPECT_THAT(set_.names(), ElementsAre("small", "large"));
  EXPECT_EQ(choose(4, Phase::kDecode, "auto"), "small");
  EXPECT_EQ(choose(8, Phase::kDecode, ""), "large");
  EXPECT_EQ(choose(8, Phase::kPrefill, "auto"),
            "[attention] no backend can serve prefill: small: a) too many heads. b) wrong phase. | "
            "large: a) wrong phase.");
}

TEST_F(BackendSetTest, ARefusalOfALatentCacheNamesTheFieldsOfItsSizes) {
  const AttentionShape shape = {
      .num_heads = 8, .head_dim = 127, .head_dim_v = 63, .is_latent = true};
  EXPECT_THAT(set_.select(shape, {.phase = Phase::kPrefill}, Device(), {}).status().message(),
              HasSubstr("head_dim is the sum of kv_lora_rank 63 and qk_rope_head_dim 64 of the "
                        "model's configuration: use another checkpoint or `device`"));
}

TEST_F(BackendSetTest, AForcedBackendIsTakenOrRefusedNeverReplaced) {
  EXPECT_EQ(choose(4, Phase::kDecode, "large"), "large");
  EXPECT_EQ(choose(8, Phase::kPrefill, "small"),
            "[attention] `attention_backend` small cannot serve prefill: a) too many heads. b) "
            "wrong phase.");
  EXPECT_EQ(choose(4, Phase::kDecode, "xqa"),
            "[attention] `attention_backend`: must be one of auto, small, large, got xqa, which "
            "needs a GPU");
}

TEST_F(BackendSetTest, ARefusalNamesTheFlagThatForced) {
  EXPECT_EQ(
      choose(8, Phase::kPrefill, {.decode = "large", .prefill = "small"}),
      "[attention] `prefill_attention_backend` small cannot serve prefill: a) too many heads. "
      "b) wrong phase.");
  EXPECT_THAT(choose(4, Phase::kDecode, {.any = "small", .decode = "xqa"}),
              StartsWith("[attention] `decode_attention_backend`: must be one of auto, small, "));
  EXPECT_THAT(choose(4, Phase::kDecode, {.any = "xqa", .any_option = "`backends`"}),
              StartsWith("[attention] `backends`: must be one of auto, small, "));
}

TEST_F(BackendSetTest, ABackendWithReservationsServesWhereNoOtherDoes) {
  auto& small = dynamic_cast<PickyBackend&>(*set_.all()[0]);
  auto& large = dynamic_cast<PickyBackend&>(*set_.all()[1]);
  const AttentionShape shape = {.num_heads = 4};
  small.is_for_graphs = true;
  EXPECT_THAT(set_.supporting(shape, {.in_graph = true}, Device()), ElementsAre(&small, &large));
  EXPECT_THAT(set_.supporting(shape, {}, Device()), ElementsAre(&large));
  EXPECT_EQ(choose(4, Phase::kDecode, "small"), "small");
  large.max_q_len = 1;
  EXPECT_THAT(set_.supporting(shape, {.q_len = 2}, Device()), ElementsAre(&small));
  small.max_q_len = 1;
  EXPECT_THAT(set_.select(shape, {.q_len = 2}, Device(), {}).status().message(),
              StartsWith("[attention] no backend can serve decode of 2 query tokens: small: a) too "
                         "many query tokens."));
}

TEST(EmptyBackendSet, SaysSo) {
  const auto chosen = BackendSet().select({}, AttentionUse(), Device(), {});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.status().message(), "[attention] no backend can serve decode: none is built in");
}

}  // namespace

}  // namespace quire
