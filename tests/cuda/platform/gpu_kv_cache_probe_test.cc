// The check of an FP8 KV cache on a GPU: its probe runs through the runner and the attention
// backends of the engine, which serves requests afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/platform/gpu_engine.h"
#include "start/scaled_model.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EngineConfig on_gpu(const ScaledModel& model) {
  EngineConfig config = model.config();
  config.device = "cuda";
  config.kv_cache_memory = int64_t{64} << 20;
  return config;
}

constexpr const char* kMoves = "of the next-token probability after 64 tokens";

TEST_F(GpuTest, AnFp8CacheWhoseScalesFitPassesTheProbe) {
  const ScaledModel model(1.0F, 1.0F);
  for (const char* speculation : {"", R"({"method":"ngram","num_speculative_tokens":4})"}) {
    EngineConfig config = on_gpu(model);
    config.speculative_config = speculation;
    const Started started = start(config);
    EXPECT_THAT(started.error, IsEmpty());
    EXPECT_THAT(started.log, AllOf(HasSubstr(kMoves), HasSubstr("checked in")));
  }
}

// The probe ran with the plans of the engine's attention, which serve its steps and graphs.
TEST_F(GpuTest, ServesRequestsAfterTheProbe) {
  const ScaledModel model(1.0F, 1.0F);
  for (const std::string& backend : served_backends(on_gpu(model))) {
    EngineConfig config = on_gpu(model);
    config.attention_backend = backend;
    const auto engine = make_engine(config);
    const std::vector<Request> requests = {greedy({5, 6, 7, 8}, 16), greedy({9, 10}, 16)};
    for (const Collected& collected : run_all(*engine, requests)) {
      EXPECT_EQ(collected.error.message(), "") << backend;
    }
  }
}

TEST_F(GpuTest, AnFp8CacheWithWrongScalesIsRefused) {
  for (const float scale : {1000.0F, 0.001F}) {
    const ScaledModel model(scale, scale);
    EXPECT_THAT(start(on_gpu(model)).error,
                AllOf(HasSubstr(kMoves), HasSubstr("expected at most 25 %"),
                      HasSubstr("self_attn.k_scale")));
  }
}

}  // namespace
}  // namespace quire::testing
