// Requests that exceed the device's memory are refused, and everything else continues.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "cuda/base/memory.h"
#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

class GpuLimits : public GpuTest {};

// The tiny model with a vocabulary that allows more biases than the GPU's tables hold.
EngineConfig wide_vocabulary(const std::string& device) {
  EngineConfig config = tiny_f32(device);
  std::ifstream file(config.model);
  std::string json((std::istreambuf_iterator<char>(file)), {});
  const std::string field = "\"vocab_size\": 96";
  json.replace(json.find(field), field.size(), "\"vocab_size\": 8192");
  config.model += ".wide.json";
  std::ofstream(config.model) << json;
  return config;
}

TEST_F(GpuLimits, ARequestBeyondTheDevicesTablesIsRefusedAlone) {
  Request large = greedy(tiny_prompt(9, 1), 4);
  for (int i = 0; i < 5000; ++i) large.sampling.logit_bias.emplace_back(i, 0.001F);
  const auto cpu = make_engine(wide_vocabulary("cpu"));
  EXPECT_TRUE(cpu->submit(large).ok());

  const auto engine = make_engine(wide_vocabulary("cuda"));
  auto other = engine->submit(greedy(tiny_prompt(30, 3), 200));
  ASSERT_TRUE(other.ok());
  const auto refused = engine->submit(large);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("logit_bias; got 5000, expected at most"));
  EXPECT_EQ(collect(**other).token_ids.size(), 200U);
  EXPECT_TRUE(engine->health().ok());
  stats_at_rest(*engine);
}

TEST_F(GpuLimits, AKvCacheLargerThanTheDeviceIsRefusedAtStart) {
  EngineConfig config = tiny_f32("cuda");
  config.kv_cache_memory = int64_t{1} << 45;
  const auto engine = Engine::create(config);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(engine.status().message(), HasSubstr("`kv_cache_memory`"));
}

// A failed allocation returns an error, and later CUDA calls do not report it again.
TEST_F(GpuLimits, AFailedAllocationIsAnErrorAndNothingElse) {
  for (const auto allocate : {cuda::device_memory, cuda::pinned_memory}) {
    const auto memory = allocate(size_t{1} << 50);
    ASSERT_FALSE(memory.ok());
    EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted) << memory.status().message();
    const auto engine = make_engine(tiny_f32("cuda"));
    EXPECT_EQ(run_all(*engine, {greedy(tiny_prompt(5, 1), 8)}).front().token_ids.size(), 8U);
  }
}

}  // namespace
}  // namespace quire::testing
