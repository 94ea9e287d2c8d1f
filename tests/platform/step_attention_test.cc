#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "attn/fake_backend.h"
#include "cpu/ops/cpu_ops.h"
#include "platform/runner.h"
#include "support/value_of.h"

namespace quire {
namespace {

using quire::testing::FakePlan;
using quire::testing::PickyBackend;
using ::testing::SizeIs;

constexpr std::array kQLens = {1, 5};
constexpr int kMaxNumSeqs = 8;

// Two groups with different numbers of heads: the backend named small serves only the first.
std::vector<KvGroup> two_groups() {
  AttentionShape shape = {.num_heads = 2, .num_kv_heads = 1, .head_dim = 8, .head_dim_v = 8};
  KvGroup full = {kv_layout(shape), shape, shape, {0, 2}};
  shape.num_heads = 4;
  return {full, KvGroup{kv_layout(shape), shape, shape, {1}}};
}

// The attention state of one model.
struct ModelParts {
  ModelParts(const BackendSet& backends, Ops& ops) {
    for (const KvGroup& group : two_groups()) {
      auto selector = testing::value_of(
          AttentionSelector::create(backends, {group.decode, group.prefill}, Device(), {},
                                    std::make_shared<TuningTable>(), kQLens));
      std::vector<DecodeKey> keys;
      for (const int q_len : kQLens) {
        keys.push_back({.num_reqs = 4, .max_kv_len = 100, .q_len = q_len});
      }
      plans.push_back(testing::value_of(AttentionPlans::make(
          selector,
          {.use = {}, .max_num_reqs = kMaxNumSeqs, .max_num_tokens = 64, .max_kv_len = 100},
          keys)));
      instance.attention.push_back(std::move(selector));
    }
    kv_cache = KvCache::allocate(two_groups(), {}, std::array{2}, ops).value();
    instance.plans = plans;
    instance.kv_cache = &kv_cache;
  }

  std::vector<AttentionPlans> plans;
  KvCache kv_cache;
  ModelInstance instance;
};

class StepAttentionTest : public ::testing::Test {
 protected:
  StepAttentionTest() : pool_(1), ops_(make_cpu_ops(pool_)) {
    backends_.add(std::make_unique<PickyBackend>("small", 2, Phase::kDecode));
    backends_.add(std::make_unique<PickyBackend>("large", 64, Phase::kDecode));
    backends_.add(std::make_unique<PickyBackend>("prompts", 64, Phase::kPrefill));
    batch_.decode = {.num_reqs = 4, .num_tokens = 4, .max_q_len = 1, .max_kv_len = 30};
    batch_.prefill = {.first_req = 4,
                      .num_reqs = 1,
                      .first_token = 4,
                      .num_tokens = 7,
                      .max_q_len = 7,
                      .max_kv_len = 7};
    batch_.kv_len_bound = bounds_;
  }
  static int num_updates(const AttentionPlan* plan) {
    return dynamic_cast<const FakePlan&>(*plan).num_updates;
  }

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  BackendSet backends_;
  std::vector<int32_t> bounds_ = {30, 30, 30, 30, 7};
  AttentionBatch batch_;
  std::array<const AttentionBatch*, 1> batches_ = {&batch_};  // for the only block table
  Stream stream_;
};

TEST_F(StepAttentionTest, UpdatesThePlanOfEachGroupAndPhaseOnce) {
  const ModelParts model(backends_, *ops_);
  StepAttention attention(model.instance, {});
  const auto steps =
      testing::value_of(attention.update(batches_, attention.choose(batch_), stream_));
  ASSERT_THAT(steps, SizeIs(2));
  for (size_t g = 0; g < 2; ++g) {
    const KvGroupStep& step = steps[g];
    const AttentionBackend& decode = *backends_.all()[g];
    EXPECT_EQ(step.decode, &model.plans[g].find({}, decode));
    EXPECT_EQ(step.prefill, &model.plans[g].find({.phase = Phase::kPrefill}, *backends_.all()[2]));
    EXPECT_EQ(num_updates(step.decode), 1);
    EXPECT_EQ(num_updates(step.prefill), 1);
    EXPECT_EQ(step.caches.size(), two_groups()[g].layers.size());
  }
}

TEST_F(StepAttentionTest, ARangeWithoutRequestsHasNoPlan) {
  const ModelParts model(backends_, *ops_);
  StepAttention attention(model.instance, {});
  batch_.prefill = {};
  auto steps = testing::value_of(attention.update(batches_, attention.choose(batch_), stream_));
  for (const KvGroupStep& step : steps) {
    EXPECT_NE(step.decode, nullptr);
    EXPECT_EQ(step.prefill, nullptr);
  }
  batch_.prefill = batch_.decode;
  batch_.decode = {};
  steps = testing::value_of(attention.update(batches_, attention.choose(batch_), stream_));
  for (const KvGroupStep& step : steps) {
    EXPECT_EQ(step.decode, nullptr);
    EXPECT_NE(step.prefill, nullptr);
  }
}

TEST_F(StepAttentionTest, AGraphHasPlansOfItsOwn) {
  const ModelParts model(backends_, *ops_);
  StepAttention attention(model.instance, {});
  const std::vector<AttentionBackend*> backends = {backends_.all()[0].get(),
                                                   backends_.all()[1].get()};
  std::vector<const AttentionPlan*> seen;
  for (const int q_len : kQLens) {
    for (const AttentionChoice& choice : attention.choose_for_graph(backends, 4, q_len)) {
      EXPECT_EQ(choice.prefill, nullptr);
      seen.push_back(choice.decode);
    }
  }
  for (const AttentionChoice& choice : attention.choose(batch_)) seen.push_back(choice.decode);
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

// A drafter and its target share a backend and a shape, but no state that an update sets.
TEST_F(StepAttentionTest, TwoModelsHavePlansOfTheirOwn) {
  const ModelParts drafter(backends_, *ops_);
  const ModelParts target(backends_, *ops_);
  StepAttention of_drafter(drafter.instance, {});
  StepAttention of_target(target.instance, {});
  const auto first = of_drafter.update(batches_, of_drafter.choose(batch_), stream_);
  const auto second = of_target.update(batches_, of_target.choose(batch_), stream_);
  ASSERT_TRUE(first.ok() && second.ok());
  for (size_t g = 0; g < 2; ++g) {
    EXPECT_NE((*first)[g].decode, (*second)[g].decode);
    EXPECT_NE((*first)[g].prefill, (*second)[g].prefill);
    EXPECT_EQ(num_updates((*first)[g].decode), 1);
  }
}

}  // namespace
}  // namespace quire
