// Two engines, or two models on one device, give the same bits as each one alone.
#include "engine/two_models.h"

#include <gtest/gtest.h>

#include "support/thread_places.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

constexpr int kNumRequests = 24;

std::array<EngineConfig, 2> configs() {
  EngineConfig first = tiny_config();
  first.device = "cpu";
  first.kv_cache_memory = int64_t{8} << 20;
  EngineConfig second = first;
  second.model = other_config_path();
  second.block_size = 32;
  second.num_threads = 3;
  second.max_num_seqs = 8;
  second.max_num_batched_tokens = 200;
  return {first, second};
}

std::vector<Request> requests() {
  return two_model_requests(kNumRequests);
}

std::vector<Collected> alone(const EngineConfig& config) {
  return run_all(*make_engine(config), requests());
}

void expect_same(const std::vector<SteppedModel::SampledTokens>& got,
                 const std::vector<SteppedModel::SampledTokens>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("sequence " + std::to_string(i));
    ASSERT_EQ(expected[i].size(), size_t{SteppedModel::kNumSteps});
    ASSERT_EQ(got[i].size(), expected[i].size());
    for (size_t t = 0; t < got[i].size(); ++t) {
      EXPECT_EQ(got[i][t].token_id, expected[i][t].token_id) << "token " << t;
      EXPECT_EQ(got[i][t].logprobs[0].logprob, expected[i][t].logprobs[0].logprob) << "token " << t;
    }
  }
}

TEST(TwoEngines, GiveTheBitsOfEachAlone) {
  const auto [first, second] = configs();
  const auto a = make_engine(first);
  const auto b = make_engine(second);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const auto outputs = run_both(*a, *b, requests());
  expect_same(outputs[0], alone(first));
  expect_same(outputs[1], alone(second));
}

TEST(TwoEngines, OneStartsAgainWhileTheOtherRuns) {
  const auto [first, second] = configs();
  const auto b = make_engine(second);
  const auto outputs = run_over_a_restart(make_engine(first), first, *b, requests());
  expect_same(outputs[0], alone(first));
  expect_same(outputs[1], alone(second));
}

TEST(TwoModels, OnOnePlatformGiveTheBitsOfEachAlone) {
  const auto [first, second] = configs();
  const auto outputs = step_together(first, second);
  expect_same(outputs[0], step_alone(first));
  expect_same(outputs[1], step_alone(second));
  EXPECT_NE(outputs[0][0][0].logprobs[0].logprob, outputs[1][0][0].logprobs[0].logprob);
}

// The bits do not depend on the nodes that divide the weights, nor on how many threads run a step.
TEST(CpuPlatform, NodesAndStepThreadsGiveTheSameBits) {
  for (const EngineConfig& config :
       {tiny_config(), tiny_experts_config(), tiny_deepseek_config()}) {
    EngineConfig one_thread = config;
    one_thread.num_threads = 1;
    const auto expected = step_alone(one_thread);
    for (const auto& nodes : {std::vector{0, 1}, {0, 1, 0}, {3, 1, 2, 3}}) {
      ThreadChoice choice;
      choice.places = on_nodes(nodes);
      for (const StepThreads& threads :
           {StepThreads{}, {.decode = 1}, {.decode = 2, .prefill = 1}}) {
        const auto platform =
            value_of(make_cpu_platform({.threads = choice, .step_threads = threads}));
        EXPECT_EQ(platform->step_threads(), threads);
        expect_same(step_alone(config, *platform), expected);
      }
    }
  }
}

// The scratch memory of an earlier runner keeps its address when a later runner needs more.
TEST(DeviceContext, KeepsTheWorkspaceOfEarlierRunners) {
  const auto platform =
      value_of(make_cpu_platform({.threads = choose_threads({.num_threads = 1})}));
  DeviceContext& context = *platform->contexts().front();
  const std::span<std::byte> small = context.workspace(1000).value();
  small[999] = std::byte{7};
  const std::span<std::byte> large = context.workspace(1 << 20).value();
  EXPECT_GE(large.size(), size_t{1} << 20);
  EXPECT_EQ(small[999], std::byte{7});
  EXPECT_EQ(context.workspace(2000)->data(), large.data());
}

TEST(CpuPlatform, RefusesDevicesThatItDoesNotHave) {
  for (const std::vector<int>& devices : {std::vector<int>{}, {1}, {0, 2}}) {
    EXPECT_EQ(make_cpu_platform({.devices = devices}).status().code(),
              StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace quire::testing
