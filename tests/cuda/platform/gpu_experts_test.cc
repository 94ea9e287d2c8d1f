// Mixtures of experts on a GPU: Qwen3-MoE, and DeepSeek-V2 with multi-head latent attention. In F32
// the results of a GPU and a CPU differ only by the order of sums.
#include <gtest/gtest.h>

#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

struct ExpertsModel {
  const char* name;
  EngineConfig (*config)();
};

constexpr ExpertsModel kModels[] = {{"qwen3", tiny_experts_config},
                                    {"deepseek", tiny_deepseek_config}};

EngineConfig config_of(const ExpertsModel& model, const char* device, const char* dtype) {
  EngineConfig config = model.config();
  config.device = device;
  config.dtype = dtype;
  config.kv_cache_memory = int64_t{64} << 20;
  return config;
}

class GpuExperts : public GpuTest, public ::testing::WithParamInterface<ExpertsModel> {};

TEST_P(GpuExperts, OutputsEqualTheCpus) {
  const std::vector<Collected> expected =
      run_all(*make_engine(config_of(GetParam(), "cpu", "f32")), mixed_requests());
  for (const bool eager : {false, true}) {
    EngineConfig config = config_of(GetParam(), "cuda", "f32");
    config.enforce_eager = eager;
    const auto engine = make_engine(config);
    EXPECT_LE(count_differences(run_all(*engine, mixed_requests()), expected), kMaxTies)
        << (eager ? "eager" : "by graphs");
  }
}

// In BF16 the prompt runs on the grouped products. A random model has no reference outputs in BF16,
// so the ids are compared with those of a second run.
TEST_P(GpuExperts, Bf16GivesTheSameBitsAgain) {
  EngineConfig config = config_of(GetParam(), "cuda", "bf16");
  config.enable_prefix_caching = false;  // a hit would change the prompt's steps
  const auto engine = make_engine(config);
  const std::vector<Collected> first = run_all(*engine, {mixed_requests()[4]});
  ASSERT_EQ(first.front().error.message(), "");
  EXPECT_EQ(count_differences(run_all(*engine, {mixed_requests()[4]}), first), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuExperts, ::testing::ValuesIn(kModels),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire::testing
