// An engine's use of GPU memory: it is as planned, all of it is allocated at start, and steps
// allocate nothing.
#include <gmock/gmock.h>

#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/platform/gpu_engine.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// Requests that use every feature of the sampler.
std::vector<Request> all_kinds_of_requests() {
  std::vector<Request> all;
  for (int i = 0; i < 24; ++i) {
    Request request = greedy(tiny_prompt(3 + 11 * i, static_cast<uint64_t>(i)), 4 + i);
    SamplingParams& sampling = request.sampling;
    if (i % 2 == 1) sampling.temperature = 0.9F;
    if (i % 3 == 1) sampling.top_k = 7;
    if (i % 4 == 1) sampling.top_p = 0.8F;
    if (i % 5 == 1) sampling.repetition_penalty = 1.2F;
    if (i % 5 == 2) sampling.logit_bias = {{5, 1.0F}, {9, -3.0F}};
    if (i % 6 == 1) sampling.logprobs = 5;
    if (i % 7 == 1) sampling.prompt_logprobs = 2;
    if (i % 8 == 1) sampling.n = 3;
    all.push_back(request);
  }
  return all;
}

class GpuMemory : public GpuTest, public ::testing::WithParamInterface<bool> {};

TEST_P(GpuMemory, AStepAllocatesNothing) {
  EngineConfig config = embedded("cuda");
  config.enforce_eager = GetParam();
  std::vector<std::string> names = served_backends(config);
  names.push_back("auto");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    config.attention_backend = name;
    const auto engine = make_engine(config);
    const int64_t before = cuda::num_allocations();
    EXPECT_GT(before, 0);
    std::vector<std::unique_ptr<RequestStream>> streams;
    for (const Request& request : all_kinds_of_requests()) {
      streams.push_back(value_of(engine->submit(request)));
    }
    for (const auto& stream : streams) collect_all(*stream);
    EXPECT_GE(stats_at_rest(*engine).num_steps, 25);
    EXPECT_EQ(cuda::num_allocations(), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, GpuMemory, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "eager" : "graphs"; });

class GpuMemoryPlan : public GpuTest {};

TEST_F(GpuMemoryPlan, TheWholeGpuIsEnough) {
  EngineConfig config = embedded("cuda");
  config.kv_cache_memory = 0;
  config.gpu_memory_utilization = 1.0;
  for (const bool enforce_eager : {false, true}) {
    config.enforce_eager = enforce_eager;
    const auto engine = make_engine(config);
    EXPECT_EQ(run_all(*engine, {greedy(tiny_prompt(100, 1), 8)}).front().token_ids.size(), 8U);
  }
}

TEST_F(GpuMemoryPlan, WithoutRoomForGraphsItRefusesInOneLine) {
  const auto free_bytes = value_of(cuda::free_device_bytes(0));
  // Another allocation takes all but 400 MiB of the GPU.
  const auto others = cuda::device_memory(static_cast<size_t>(free_bytes - (int64_t{400} << 20)));
  ASSERT_TRUE(others.ok()) << others.status().message();
  EngineConfig config = embedded("cuda");
  config.kv_cache_memory = 0;
  for (const double utilization : {0.9, 1.0}) {
    config.gpu_memory_utilization = utilization;
    const auto engine = Engine::create(config);
    if (engine.ok()) continue;
    EXPECT_EQ(engine.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(engine.status().message(), HasSubstr("gpu_memory_utilization"));
    EXPECT_EQ(engine.status().message().find('\n'), std::string::npos);
  }
  config.gpu_memory_utilization = 0.9;
  EXPECT_FALSE(Engine::create(config).ok());
}

TEST_F(GpuMemoryPlan, AShareOutOfRangeIsRefused) {
  EngineConfig config = embedded("cuda");
  for (const double utilization : {0.0, -1.0, 1.01}) {
    config.gpu_memory_utilization = utilization;
    EXPECT_EQ(Engine::create(config).status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace quire::testing
