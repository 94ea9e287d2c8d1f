// Compares routing and the products of experts with their definitions in double, on every target.
#include "cpu/ops/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "cpu/ops/gemm_bf16.h"
#include "cpu/ops/routing.h"
#include "ops_fixture.h"
#include "run_experts.h"
#include "support/expert_cases.h"
#include "support/reference_ops.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;

std::vector<RoutedExpert> route(const ExpertRouting& routing, const std::vector<float>& logits,
                                const std::vector<float>& bias = {}) {
  EXPECT_TRUE(is_valid(routing));
  std::vector<int32_t> ids(static_cast<size_t>(routing.num_per_token()), -1);
  std::vector<float> weights(ids.size());
  cpu::route_row(routing, logits.data(), bias.empty() ? nullptr : bias.data(), ids.data(),
                 weights.data());
  std::vector<RoutedExpert> routed;
  for (size_t j = 0; j < ids.size(); ++j) routed.push_back({ids[j], weights[j]});
  return routed;
}

std::vector<int32_t> ids_of(const std::vector<RoutedExpert>& routed) {
  std::vector<int32_t> ids;
  for (const RoutedExpert& expert : routed) ids.push_back(expert.id);
  return ids;
}

TEST(Routing, AgreesWithTheDefinition) {
  for (const RoutingCase& c : kRoutingCases) {
    const auto num_experts = static_cast<size_t>(c.routing.num_experts);
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const std::vector<float> logits = random_floats(num_experts, seed, 2.0F);
      const std::vector<float> bias =
          c.has_bias ? random_floats(num_experts, seed + 1000, 0.3F) : std::vector<float>();
      const auto got = route(c.routing, logits, bias);
      const auto expected = reference_route(c.routing, logits, bias);
      ASSERT_EQ(ids_of(got), ids_of(expected)) << c.name << " seed " << seed;
      for (size_t j = 0; j < got.size(); ++j) {
        ASSERT_NEAR(got[j].weight, expected[j].weight, 2e-6 * expected[j].weight) << c.name;
      }
    }
  }
}

TEST(Routing, ANumberPerExpertMultipliesTheWeights) {
  const std::vector<float> scales = {2.0F, 0.5F, 3.0F, 7.0F};
  const std::vector<float> logits = {1.0F, 3.0F, -1.0F, 2.0F};
  ExpertRouting routing = {.num_experts = 4, .top_k = 2, .renormalize = true, .num_shared = 1};
  const auto plain = route(routing, logits);
  routing.expert_scales = scales.data();
  const auto scaled = route(routing, logits);
  ASSERT_EQ(ids_of(scaled), ids_of(plain));
  EXPECT_THAT(ids_of(scaled), ElementsAre(1, 3, 4));
  EXPECT_DOUBLE_EQ(scaled[0].weight, 0.5 * plain[0].weight);
  EXPECT_NEAR(scaled[1].weight, 7.0 * plain[1].weight, 1e-6);
  EXPECT_EQ(scaled[2].weight, 1.0F) << "the shared expert";
}

TEST(Routing, BiasChangesTheChoiceAndNotTheWeights) {
  const ExpertRouting routing = {.num_experts = 4, .top_k = 2, .scores = RouterScores::kSigmoid};
  const std::vector<float> logits = {2.0F, 1.0F, 0.0F, -1.0F};
  const auto routed = route(routing, logits, {0.0F, 0.0F, 0.0F, 9.0F});
  EXPECT_THAT(ids_of(routed), ElementsAre(3, 0));
  EXPECT_NEAR(routed[0].weight, 1.0 / (1.0 + std::exp(1.0)), 1e-6);
}

// The two best experts of all are in the two groups that lose.
TEST(Routing, GroupsLimitTheChoice) {
  ExpertRouting routing = {.num_experts = 8,
                           .top_k = 2,
                           .num_groups = 4,
                           .top_groups = 2,
                           .group_scores = GroupScores::kTwoLargest};
  const std::vector<float> logits = {3.0F, -9.0F, 2.9F, 2.8F, 3.1F, -9.0F, 2.7F, 2.6F};
  EXPECT_THAT(ids_of(route(routing, logits)), ElementsAre(2, 3));
  routing.group_scores = GroupScores::kLargest;
  EXPECT_THAT(ids_of(route(routing, logits)), ElementsAre(4, 0));
  routing.top_groups = 4;
  routing.top_k = 5;
  EXPECT_THAT(ids_of(route(routing, logits)), ElementsAre(4, 0, 2, 3, 6));
}

TEST(Routing, TheLowerIdWinsTies) {
  for (const RouterScores scores : {RouterScores::kSoftmax, RouterScores::kSigmoid}) {
    ExpertRouting routing = {.num_experts = 6, .top_k = 4, .scores = scores};
    EXPECT_THAT(ids_of(route(routing, std::vector<float>(6, 0.7F))), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(ids_of(route(routing, {1, 2, 2, 1, 3, 2})), ElementsAre(4, 1, 2, 5));
    routing.num_groups = 3;
    routing.top_groups = 2;
    EXPECT_THAT(ids_of(route(routing, std::vector<float>(6, 0.7F))), ElementsAre(0, 1, 2, 3));
  }
}

TEST(Routing, UnderflowedScoresGiveWeightsOfZero) {
  const ExpertRouting routing = {
      .num_experts = 4, .top_k = 2, .scores = RouterScores::kSigmoid, .renormalize = true};
  for (const RoutedExpert& expert : route(routing, std::vector<float>(4, -200.0F))) {
    EXPECT_EQ(expert.weight, 0.0);
  }
}

TEST(Routing, AnyLogitsGiveDistinctExpertsInRange) {
  const std::vector<float> kSpecial = {NAN, -NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 0.0F, 1.0F};
  std::mt19937 random(3);
  for (const RoutingCase& c : kRoutingCases) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      std::vector<float> logits(static_cast<size_t>(c.routing.num_experts), NAN);
      for (float& logit : logits) {
        if (repeat > 0) logit = kSpecial[random() % kSpecial.size()];
      }
      const std::vector<float> bias =
          c.has_bias ? random_floats(logits.size(), 1) : std::vector<float>();
      const auto routed = route(c.routing, logits, bias);
      std::set<int32_t> distinct;
      for (const RoutedExpert& expert : routed) {
        ASSERT_GE(expert.id, 0) << c.name;
        ASSERT_LT(expert.id, c.routing.num_experts + c.routing.num_shared) << c.name;
        distinct.insert(expert.id);
      }
      ASSERT_EQ(distinct.size(), routed.size()) << c.name;
      if (repeat > 0) continue;
      for (const RoutedExpert& expert : routed) {
        EXPECT_EQ(std::isnan(expert.weight), expert.id < c.routing.num_experts) << c.name;
      }
    }
  }
}

// An expert whose score is NaN is not chosen while there are others.
TEST(Routing, NaNComesLast) {
  const ExpertRouting routing = {.num_experts = 4, .top_k = 3, .scores = RouterScores::kSigmoid};
  EXPECT_THAT(ids_of(route(routing, {NAN, -5.0F, NAN, 1.0F})), ElementsAre(3, 1, 0));
}

TEST(Routing, ImpossibleRulesAreNotValid) {
  const ExpertRouting good = {.num_experts = 8, .top_k = 2, .num_groups = 4, .top_groups = 1};
  EXPECT_TRUE(is_valid(good));
  const auto with = [&](auto change) {
    ExpertRouting routing = good;
    change(routing);
    return is_valid(routing);
  };
  EXPECT_FALSE(with([](auto& r) { r.num_experts = 0; }));
  EXPECT_FALSE(with([](auto& r) { r.num_experts = kMaxExperts + 4; }));
  EXPECT_FALSE(with([](auto& r) { r.num_groups = 3; }));
  EXPECT_FALSE(with([](auto& r) { r.num_groups = 0; }));
  EXPECT_FALSE(with([](auto& r) { r.top_groups = 5; }));
  EXPECT_FALSE(with([](auto& r) { r.top_groups = 0; }));
  EXPECT_FALSE(with([](auto& r) { r.top_k = 3; })) << "one group has two experts";
  EXPECT_FALSE(with([](auto& r) { r.top_k = 0; }));
  EXPECT_FALSE(with([](auto& r) { r.num_shared = -1; }));
  EXPECT_FALSE(with([](auto& r) { r.num_shared = kMaxExperts - r.num_experts + 1; }));
  EXPECT_FALSE(with([](auto& r) {
    r.num_groups = r.top_groups = 8;
    r.group_scores = GroupScores::kTwoLargest;
  }));
}

// Kernels with BF16 products (AMX, AVX-512 BF16) split an activation into two terms, which is exact
// to 2^-17 of it: results of three products in turn differ by up to 3.1e-5. AMX also splits an F16
// weight and omits the product of the second terms, which doubles the error (gemm_amx.h).
double bound_of(const Variant& variant, DType weights) {
  if (uses_amx(variant) && weights == DType::kF16) return 1.3e-4;
  return variant.options.use_amx || variant.options.use_avx512_bf16 ? 6e-5 : 2e-5;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected, double bound,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], bound * (1.0 + std::fabs(expected[i]))) << what << " at " << i;
  }
}

constexpr DType kWeightTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

bool is_slow(const Variant& variant) {
  return variant.target == HWY_SCALAR || variant.target == HWY_EMU128;
}

TEST(Experts, AgreeWithTheDefinition) {
  const ExpertsShape shapes[] = {{1, 1, 8, 4}, {4, 2, 33, 17}, {40, 3, 48, 24}, {6, 6, 140, 70}};
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    ReferenceOps reference;
    for (const ExpertsShape& shape : shapes) {
      if (is_slow(variant) && shape.hidden_size > 100) continue;
      for (const DType dtype : kWeightTypes) {
        const double bound = bound_of(variant, dtype);
        RandomExperts source(shape, dtype, 7);
        const auto experts = ops->weights().make_experts(source).value();
        const auto expected_experts = reference.make_experts(source).value();
        EXPECT_GT(experts->num_bytes(), 0U);
        for (const int64_t num_tokens : {0, 1, 33}) {
          Step step = random_step(shape, num_tokens, 5);
          const std::string what = variant.name + " " + std::string(dtype_name(dtype));
          expect_near(run_experts(*ops, *experts, step),
                      run_experts(reference, *expected_experts, step), bound, what);
          const std::vector<float> before = random_floats(step.x.size(), 9);
          expect_near(run_experts(*ops, *experts, step, &before),
                      run_experts(reference, *expected_experts, step, &before), bound,
                      what + " added");
        }
      }
    }
  }
}

// F16 matrices whose values do not fit the pairs of AMX stand between others that do.
TEST(Experts, MayHaveDifferentKernels) {
  const ExpertsShape shape = {8, 4, 40, 24};
  RandomExperts source(shape, DType::kF16, 7);
  for (const int expert : {0, 3, 4}) source.enlarge(expert);
  ReferenceOps reference;
  const auto expected = reference.make_experts(source).value();
  Step step = random_step(shape, 20, 1);
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    const auto experts = ops->weights().make_experts(source).value();
    // An input of this size to a gate of 40 leaves errors of up to 1e-3.
    const auto got = run_experts(*ops, *experts, step);
    const auto want = run_experts(reference, *expected, step);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-3 * (1.0 + std::fabs(want[i]))) << variant.name;
    }
  }
}

// One expert has more rows than a block, others none.
TEST(Experts, OneMayHaveAlmostAllTokens) {
  const ExpertsShape shape = {8, 2, 24, 16};
  ReferenceOps reference;
  RandomExperts source(shape, DType::kBF16, 3);
  const auto expected = reference.make_experts(source).value();
  for (const Variant& variant : variants()) {
    VariantOps ops(variant);
    const auto experts = ops->weights().make_experts(source).value();
    for (const uint32_t hot : {9U, 10U}) {
      Step step = random_step(shape, 700, hot, hot);
      expect_near(run_experts(*ops, *experts, step), run_experts(reference, *expected, step),
                  bound_of(variant, DType::kBF16), variant.name);
    }
  }
}

// With AMX, the many rows of one expert multiply a part of K at a time, so that they stay in the
// cache, and the few rows of others do the same.
TEST(Experts, FewRowsShareTheDepthOfManyRows) {
  const ExpertsShape shape = {12, 2, 2048, 24};
  Step whole = random_step(shape, 200, 4, 10);
  std::vector<int64_t> num_rows(12, 0);
  for (const int32_t id : whole.ids) ++num_rows[static_cast<size_t>(id)];
  ASSERT_GT(num_rows[1], 144) << "more than 8 tiles of rows have less than 2048 of K at a time";
  ASSERT_GT(num_rows[2], 0);
  ASSERT_LE(num_rows[2], 32);
  ReferenceOps reference;
  RandomExperts source(shape, DType::kF16, 3);
  const auto expected = run_experts(reference, *reference.make_experts(source).value(), whole);
  for (const Variant& variant : variants()) {
    if (is_slow(variant)) continue;
    VariantOps ops(variant);
    const auto experts = ops->weights().make_experts(source).value();
    const std::vector<float> got = run_experts(*ops, *experts, whole);
    expect_near(got, expected, bound_of(variant, DType::kF16), variant.name);
    for (const int64_t token : {0, 70, 199}) {
      Step alone = part_of(whole, shape, token, 1);
      const std::vector<float> out = run_experts(*ops, *experts, alone);
      EXPECT_EQ(std::memcmp(out.data(), got.data() + token * shape.hidden_size,
                            out.size() * sizeof(float)),
                0)
          << variant.name << " token " << token;
    }
  }
}

// A token has the same bits alone and in a batch of any size, on one thread or two.
TEST(Experts, RowsDoNotDependOnTheirBatch) {
  const ExpertsShape shape = {24, 4, 160, 96};
  constexpr int64_t kMaxTokens = 400;
  const Step whole = random_step(shape, kMaxTokens, 11, 7);
  for (const Variant& variant : variants()) {
    if (is_slow(variant)) continue;
    for (const DType dtype : kWeightTypes) {
      RandomExperts source(shape, dtype, 3);
      std::vector<float> all;
      for (const auto& nodes : {std::vector{0}, {0, 0}, {1, 0, 2}}) {
        VariantOps ops(variant, on_nodes(nodes));
        const auto experts = ops->weights().make_experts(source).value();
        Step step = whole;
        const std::vector<float> out = run_experts(*ops, *experts, step);
        if (all.empty()) all = out;
        ASSERT_EQ(std::memcmp(out.data(), all.data(), all.size() * sizeof(float)), 0);
        expect_bits_of_parts(*ops, *experts, whole, all,
                             variant.name + " " + std::string(dtype_name(dtype)));
      }
    }
  }
}

// Gates and ups are so large that their limits matter.
TEST(Experts, MayHaveBiasesAndAnActivationOfBoth) {
  const ExpertsShape shape = {6, 2, 160, 96};
  for (const bool has_down : {true, false}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      RandomExperts source(shape, dtype, 3);
      source.add_biases(100, has_down);
      Step step = random_step(shape, 40, 11);
      step.activation = Activation::kClampedSwiglu;
      for (float& x : step.x) x *= 4.0F;
      ReferenceOps reference;
      const std::vector<float> expected =
          run_experts(reference, *reference.make_experts(source).value(), step);
      for (const Variant& variant : variants()) {
        VariantOps ops(variant);
        const auto experts = ops->weights().make_experts(source).value();
        expect_near(run_experts(*ops, *experts, step), expected, 4 * bound_of(variant, dtype),
                    variant.name);
      }
    }
  }
}

// Experts of F16 and of BF16 in turn.
class AlternatingExperts : public ExpertsSource {
 public:
  explicit AlternatingExperts(const ExpertsShape& shape)
      : f16_(shape, DType::kF16, 3), bf16_(shape, DType::kBF16, 3) {}
  const ExpertsShape& shape() const override { return f16_.shape(); }
  Result<LinearSource> gate_up(int idx) override { return of(idx).gate_up(idx); }
  Result<LinearSource> down(int idx) override { return of(idx).down(idx); }

 private:
  RandomExperts& of(int idx) { return idx % 2 == 0 ? f16_ : bf16_; }

  RandomExperts f16_;
  RandomExperts bf16_;
};

// Rounding leaves fewer BF16 terms per activation to the BF16 experts of a call than to its F16
// experts. A rounded activation is exact to 2^-9 of it.
TEST(Experts, RoundOnlyTheActivationsOfBf16Weights) {
  const ExpertsShape shape = {24, 4, 160, 96};
  const Step whole = random_step(shape, 400, 11, 7);
  AlternatingExperts source(shape);
  ReferenceOps reference;
  Step step = whole;
  const std::vector<float> expected =
      run_experts(reference, *reference.make_experts(source).value(), step);
  for (Variant variant : variants()) {
    if (is_slow(variant)) continue;
    VariantOps exact(variant);
    const std::vector<float> not_rounded =
        run_experts(*exact, *exact->weights().make_experts(source).value(), step);
    expect_near(not_rounded, expected, bound_of(variant, DType::kF16), variant.name);
    variant.options.rounding = InputRounding::kBf16;
    VariantOps ops(variant);
    const auto experts = ops->weights().make_experts(source).value();
    const std::vector<float> rounded = run_experts(*ops, *experts, step);
    expect_near(rounded, expected, 2e-2, variant.name + " rounded");
    EXPECT_EQ(rounded != not_rounded, cpu::avx512_bf16_usable() && variant.options.use_avx512_bf16)
        << variant.name;
    expect_bits_of_parts(*ops, *experts, whole, rounded, variant.name + " rounded");
  }
}

TEST(Experts, AnExpertIsReadOnceIfItsRowsFitABlock) {
  const ExpertsShape shape = {.num_experts = 40, .top_k = 3, .hidden_size = 1};
  std::vector<std::byte> bytes(static_cast<size_t>(cpu::ExpertsWorkspace::num_bytes(shape, 600)));
  for (const int64_t num_tokens : {1, 20, 600}) {
    const Step step = random_step(shape, num_tokens, 2, 6);
    const cpu::ExpertsWorkspace workspace(shape, num_tokens, bytes);
    cpu::sort_pairs(step.ids.data(), num_tokens * 3, shape.num_experts, workspace);
    cpu::ExpertsBlocks blocks(workspace, shape.num_experts);
    std::vector<int64_t> pairs;
    std::vector<int64_t> num_parts(40, 0);
    std::vector<int64_t> num_rows(40, 0);
    for (auto block = blocks.next(); block.num_rows > 0; block = blocks.next()) {
      int64_t end = 0;
      for (const auto& part : block.parts()) {
        EXPECT_EQ(part.first_row % cpu::kGroupAlign, 0);
        EXPECT_GE(part.first_row, end);
        end = part.first_row + part.num_rows;
        ++num_parts[static_cast<size_t>(part.expert)];
        num_rows[static_cast<size_t>(part.expert)] += part.num_rows;
      }
      EXPECT_LE(end, cpu::kMaxGroupedRows);
      for (const auto& row : block.rows()) pairs.push_back(row.pair);
    }
    for (size_t expert = 0; expert < 40; ++expert) {
      EXPECT_EQ(num_rows[expert], std::ranges::count(step.ids, static_cast<int32_t>(expert)));
      EXPECT_EQ(num_parts[expert], ceil_div(num_rows[expert], cpu::kMaxGroupedRows));
    }
    std::ranges::sort(pairs);
    for (size_t i = 0; i < pairs.size(); ++i) ASSERT_EQ(pairs[i], static_cast<int64_t>(i));
    EXPECT_EQ(pairs.size(), step.ids.size());
  }
}

TEST(Experts, RefuseMatricesOfAnotherShape) {
  class Wrong : public RandomExperts {
   public:
    using RandomExperts::RandomExperts;
    Result<LinearSource> down(int idx) override { return gate_up(idx); }
  };
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  Wrong source({2, 1, 8, 4}, DType::kF32, 1);
  EXPECT_FALSE(ops->weights().make_experts(source).ok());
}

TEST(Experts, CheckTheirArguments) {
  const ExpertsShape shape = {4, 2, 8, 4};
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  RandomExperts source(shape, DType::kF32, 1);
  const auto experts = ops->weights().make_experts(source).value();
  for (const int32_t id : {-1, 4}) {
    Step step = random_step(shape, 3, 1);
    step.ids[2] = id;
    EXPECT_DEATH((void)run_experts(*ops, *experts, step), "an id is not of an expert");
  }
}

}  // namespace
}  // namespace quire::testing
