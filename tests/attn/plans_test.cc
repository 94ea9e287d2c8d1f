#include "attn/plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "attn/fake_backend.h"
#include "support/value_of.h"

namespace quire {
namespace {

using quire::testing::PickyBackend;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr AttentionShape kDecodeShape = {.num_heads = 32, .num_kv_heads = 8, .head_dim = 128};
constexpr AttentionShape kPrefillShape = {.num_heads = 32, .num_kv_heads = 32, .head_dim = 192};
constexpr PlanLimits kLargest = {
    .use = {}, .max_num_reqs = 64, .max_num_tokens = 256, .max_kv_len = 16384};
constexpr AttentionUse kGraph = {.phase = Phase::kDecode, .q_len = 1, .in_graph = true};
constexpr AttentionUse kEager = {.phase = Phase::kDecode};
constexpr AttentionUse kPrompts = {.phase = Phase::kPrefill};

// xqa is the fastest at 1 x 1024, flashinfer at 64 x 1024.
class PlansTest : public ::testing::Test {
 protected:
  PlansTest()
      : flashinfer_(add("flashinfer", Phase::kDecode, 100)),
        xqa_(add("xqa", Phase::kDecode, 300)),
        native_(add("native", Phase::kPrefill, 200)) {
    const auto row = [](int num_reqs, std::string backend, double us) {
      return TuningRow{tuning_point(kDecodeShape, Phase::kDecode, num_reqs, 1, 1024),
                       std::move(backend), us};
    };
    const std::vector<TuningRow> rows = {row(1, "xqa", 5), row(1, "flashinfer", 7),
                                         row(64, "xqa", 30), row(64, "flashinfer", 20)};
    table_ = std::make_shared<TuningTable>(rows);
  }
  PickyBackend& add(std::string_view name, Phase phase, size_t workspace_bytes) {
    auto backend = std::make_unique<PickyBackend>(name, 64, phase, workspace_bytes);
    PickyBackend& added = *backend;
    set_.add(std::move(backend));
    return added;
  }
  AttentionSelector selector(std::string_view decode = "auto",
                             const std::vector<int>& q_lens = {1}) {
    return testing::value_of(AttentionSelector::create(
        set_, {kDecodeShape, kPrefillShape}, Device(), {.decode = decode}, table_, q_lens));
  }
  // Requests of the plans for graphs, ascending.
  static std::vector<int> graph_sizes(const PickyBackend& backend) {
    std::vector<int> sizes;
    for (const auto& [shape, limits] : backend.made) {
      if (limits.use.in_graph) sizes.push_back(limits.max_num_reqs);
    }
    std::ranges::sort(sizes);
    return sizes;
  }

  BackendSet set_;
  PickyBackend& flashinfer_;
  PickyBackend& xqa_;
  PickyBackend& native_;
  std::shared_ptr<const TuningTable> table_;
};

const DecodeKey kKeys[] = {{1, 1024},
                           {2, 1024},
                           {64, 1024},
                           {1, 16384},
                           {.num_reqs = 8, .max_kv_len = 1024, .eager = true}};

TEST_F(PlansTest, EveryGraphAndEveryCandidateHasAPlan) {
  AttentionSelector selector = this->selector();
  const auto plans = testing::value_of(AttentionPlans::make(selector, kLargest, kKeys));
  EXPECT_THAT(graph_sizes(xqa_), ElementsAre(1, 2));
  EXPECT_THAT(graph_sizes(flashinfer_), ElementsAre(64));
  EXPECT_THAT(xqa_.made, SizeIs(3));  // and one for eager steps
  EXPECT_THAT(native_.made, SizeIs(1));
  EXPECT_EQ(plans.workspace_bytes(), 300U);
  std::vector<const AttentionPlan*> found = {
      &plans.find(kGraph, xqa_, 1),     &plans.find(kGraph, xqa_, 2),
      &plans.find(kEager, xqa_),        &plans.find(kGraph, flashinfer_, 64),
      &plans.find(kEager, flashinfer_), &plans.find(kPrompts, native_)};
  std::ranges::sort(found);
  EXPECT_EQ(std::ranges::adjacent_find(found), found.end()) << "one plan serves two";
  EXPECT_DEATH(plans.find(kGraph, xqa_, 64), "no plan serves this step");
  EXPECT_THAT(selector.remarks(), IsEmpty());
}

TEST_F(PlansTest, LimitsAreThoseOfTheUse) {
  AttentionSelector selector = this->selector("xqa", {1, 3});
  const DecodeKey keys[] = {{16, 1024}, {.num_reqs = 16, .max_kv_len = 1024, .q_len = 3}};
  ASSERT_TRUE(AttentionPlans::make(selector, kLargest, keys).ok());
  ASSERT_THAT(native_.made, SizeIs(1));
  const auto& [prefill_shape, prompts] = native_.made[0];
  EXPECT_EQ(prefill_shape, kPrefillShape);
  EXPECT_EQ(prompts.use, kPrompts);
  EXPECT_EQ(prompts.max_num_tokens, 256);
  for (const auto& [shape, limits] : xqa_.made) {
    EXPECT_EQ(shape, kDecodeShape);
    EXPECT_EQ(limits.max_kv_len, 16384);
    const int q_len = limits.use.q_len;
    EXPECT_EQ(limits.max_num_reqs, limits.use.in_graph ? 16 : 64);
    EXPECT_EQ(limits.max_num_tokens, limits.use.in_graph ? 16 * q_len : std::min(64 * q_len, 256));
  }
  EXPECT_THAT(xqa_.made, SizeIs(4));
}

// An eager step of a query length that was not planned uses the plan of the next longer one.
TEST_F(PlansTest, EagerPlansServeShorterQueries) {
  AttentionSelector selector = this->selector("auto", {1, 5});
  const auto plans = testing::value_of(AttentionPlans::make(selector, kLargest, {}));
  const auto at = [&](int q_len) { return &plans.find({.q_len = q_len}, xqa_); };
  EXPECT_NE(at(1), at(5));
  EXPECT_EQ(at(3), at(5));
}

TEST_F(PlansTest, ABackendWithoutAPlanIsLeftOutAndOthersTakeItsGraphs) {
  AttentionSelector selector = this->selector();
  xqa_.fault = internal_error("[xqa] nothing is there");
  const auto plans = testing::value_of(AttentionPlans::make(selector, kLargest, kKeys));
  EXPECT_EQ(selector.decode({1, 1024})->name(), "flashinfer");
  EXPECT_THAT(selector.remarks(), ElementsAre("xqa does not serve decode: [xqa] nothing is there"));
  EXPECT_THAT(graph_sizes(flashinfer_), ElementsAre(1, 2, 64));
  for (const DecodeKey& key : kKeys) {
    (void)plans.find(key.use(), *selector.decode(key), key.num_reqs);
  }
  EXPECT_EQ(plans.workspace_bytes(), 200U);
}

TEST_F(PlansTest, AForcedBackendWithoutAPlanIsRefused) {
  AttentionSelector forced = this->selector("xqa");
  xqa_.fault = internal_error("[xqa] nothing is there");
  EXPECT_EQ(AttentionPlans::make(forced, kLargest, kKeys).status().message(),
            "[xqa] nothing is there");
}

}  // namespace
}  // namespace quire
