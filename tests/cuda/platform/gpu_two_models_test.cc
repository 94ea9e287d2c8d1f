// Two engines or two models on one GPU give the same outputs as each of them alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cuda/platform/gpu_engine.h"
#include "engine/two_models.h"

namespace quire::testing {
namespace {

constexpr float kF32Tolerance = 1e-4F;
// Another start may choose other kernels for matrix products, which round differently: on an H200
// the log probabilities of two starts of the embedded model alone differed by up to 0.133.
constexpr float kBf16Tolerance = 0.2F;

std::array<EngineConfig, 2> configs() {
  const EngineConfig first = tiny_f32("cuda");
  EngineConfig second = first;
  second.model = other_config_path();
  second.block_size = 32;
  second.max_num_seqs = 8;
  return {first, second};
}

std::vector<Request> requests() {
  return two_model_requests(48);
}

class GpuTwoModels : public GpuTest {
 protected:
  void expect_answers_of_each_alone(const std::array<std::vector<Collected>, 2>& outputs) const {
    for (size_t i = 0; i < 2; ++i) {
      const auto alone = run_all(*make_engine(configs()[i]), requests());
      EXPECT_LE(count_differences(outputs[i], alone), kMaxTies) << "engine " << i;
    }
  }
};

// The largest difference of log probabilities, up to the first token that a near tie decides, after
// which the contexts differ.
float largest_difference(const std::vector<SteppedModel::SampledTokens>& got,
                         const std::vector<SteppedModel::SampledTokens>& expected) {
  float largest = 0;
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_EQ(expected[i].size(), size_t{SteppedModel::kNumSteps});
    EXPECT_EQ(got[i].size(), expected[i].size());
    for (size_t t = 0; t < std::min(got[i].size(), expected[i].size()); ++t) {
      const float difference = got[i][t].logprobs[0].logprob - expected[i][t].logprobs[0].logprob;
      largest = std::max(largest, std::isnan(difference) ? INFINITY : std::abs(difference));
      if (got[i][t].token_id != expected[i][t].token_id) break;
    }
  }
  return largest;
}

TEST_F(GpuTwoModels, OutputsOfTwoEnginesAreThoseOfEachAlone) {
  const auto [first, second] = configs();
  const auto a = make_engine(first);
  const auto b = make_engine(second);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  expect_answers_of_each_alone(run_both(*a, *b, requests()));
}

TEST_F(GpuTwoModels, AnEngineStartsAgainWhileTheOtherRuns) {
  const auto [first, second] = configs();
  const auto b = make_engine(second);
  expect_answers_of_each_alone(run_over_a_restart(make_engine(first), first, *b, requests()));
}

void expect_models_to_keep_apart(EngineConfig first, EngineConfig second, float tolerance) {
  for (const bool enforce_eager : {false, true}) {
    SCOPED_TRACE(enforce_eager ? "eager" : "graphs");
    first.enforce_eager = second.enforce_eager = enforce_eager;
    const auto outputs = step_together(first, second);
    EXPECT_LE(largest_difference(outputs[0], step_alone(first)), tolerance);
    EXPECT_LE(largest_difference(outputs[1], step_alone(second)), tolerance);
  }
}

TEST_F(GpuTwoModels, OutputsOnOneContextAreThoseOfEachAlone) {
  for (const char* backend : {"auto", "native"}) {
    SCOPED_TRACE(backend);
    auto [first, second] = configs();
    first.attention_backend = second.attention_backend = backend;
    expect_models_to_keep_apart(first, second, kF32Tolerance);
  }
}

// A drafter may have its target's attention shape: each must run its own plans.
TEST_F(GpuTwoModels, OutputsOfEqualShapesAreThoseOfEachAlone) {
  EngineConfig config = embedded("cuda");
  const auto backends = served_backends(config, Phase::kDecode);
  ASSERT_FALSE(backends.empty());
  for (const std::string& backend : backends) {
    SCOPED_TRACE(backend);
    config.decode_attention_backend = backend;
    expect_models_to_keep_apart(config, config, kBf16Tolerance);
  }
}

TEST_F(GpuTwoModels, AMissingDeviceIsRefused) {
  for (const std::vector<int>& devices : {std::vector<int>{}, {1000}, {0, 1000}}) {
    EXPECT_EQ(make_cuda_platform({.devices = devices}).status().code(),
              StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(cuda_status(1000).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire::testing
