// Each step of a GPU engine makes one copy to the host, of its results, and one wait.
#include <gmock/gmock.h>

#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

// Steps, copies and waits of a run.
struct Spent {
  int64_t num_steps = 0;
  int64_t num_copies = 0;
  int64_t num_waits = 0;
};

template <typename Work>
Spent spend(Engine& engine, const Work& work) {
  const EngineStats before = stats_at_rest(engine);
  work();
  const EngineStats after = stats_at_rest(engine);
  return {after.num_steps - before.num_steps,
          after.num_device_to_host_copies - before.num_device_to_host_copies,
          after.num_device_waits - before.num_device_waits};
}

EngineConfig config_of(const std::string& backend, bool enforce_eager) {
  EngineConfig config = embedded("cuda");
  config.enforce_eager = enforce_eager;
  config.enable_prefix_caching = false;
  config.max_num_batched_tokens = 64;
  config.attention_backend = backend;
  return config;
}

class GpuTraffic : public GpuTest, public ::testing::WithParamInterface<bool> {
 protected:
  // Checks auto and every backend that serves the model on this machine.
  template <typename Check>
  void for_each_backend(const Check& check) {
    std::vector<std::string> names = served_backends(config_of("auto", GetParam()));
    EXPECT_THAT(names, ::testing::IsSupersetOf({"native", "flashinfer"}));
    names.push_back("auto");
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const auto engine = make_engine(config_of(name, GetParam()));
      check(*engine);
    }
  }
};

TEST_P(GpuTraffic, OneCopyAndOneWaitAStep) {
  for_each_backend([](Engine& engine) {
    const Spent prefill = spend(engine, [&] {
      std::vector<Request> requests;
      for (uint64_t i = 0; i < 4; ++i) requests.push_back(greedy(tiny_prompt(16, i), 1));
      run_all(engine, requests);
    });
    EXPECT_GE(prefill.num_steps, 1);
    EXPECT_EQ(prefill.num_copies, prefill.num_steps);
    EXPECT_EQ(prefill.num_waits, prefill.num_steps);

    const Spent decode = spend(engine, [&] { run_all(engine, {greedy(tiny_prompt(5, 1), 50)}); });
    EXPECT_GE(decode.num_steps, 50);
    EXPECT_EQ(decode.num_copies, decode.num_steps);
    EXPECT_EQ(decode.num_waits, decode.num_steps);

    // The first request decodes in every step that prefills another prompt.
    const Spent mixed = spend(engine, [&] {
      std::vector<Request> requests = {greedy(tiny_prompt(9, 1), 120)};
      for (uint64_t i = 0; i < 12; ++i) requests.push_back(greedy(tiny_prompt(50, i), 8));
      run_all(engine, requests);
    });
    EXPECT_GE(mixed.num_steps, 120);
    EXPECT_EQ(mixed.num_copies, mixed.num_steps);
    EXPECT_EQ(mixed.num_waits, mixed.num_steps);
  });
}

TEST_P(GpuTraffic, APartOfAPromptCopiesNothing) {
  for_each_backend([](Engine& engine) {
    const Spent spent = spend(engine, [&] { run_all(engine, {greedy(tiny_prompt(200, 1), 4)}); });
    EXPECT_EQ(spent.num_copies, spent.num_steps - 3);  // 64 + 64 + 64 + 8 tokens
    EXPECT_EQ(spent.num_waits, spent.num_steps);
  });
}

TEST_P(GpuTraffic, PromptLogprobsCopyOnceAChunkOfLogits) {
  for_each_backend([](Engine& engine) {
    const Spent spent = spend(engine, [&] {
      Request request = greedy(tiny_prompt(50, 1), 4);
      request.sampling.prompt_logprobs = 1;
      run_all(engine, {request});
    });
    EXPECT_EQ(spent.num_copies, spent.num_steps + 2);  // 49 positions with 32 logits rows per read
    EXPECT_EQ(spent.num_waits, spent.num_steps);
  });
}

INSTANTIATE_TEST_SUITE_P(Modes, GpuTraffic, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "eager" : "graphs"; });

TEST(CpuTraffic, ThereIsNone) {
  const auto engine = make_engine(tiny_f32("cpu"));
  run_all(*engine, {greedy(tiny_prompt(5, 1), 4)});
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_GE(stats.num_steps, 4);
  EXPECT_EQ(stats.num_device_to_host_copies, 0);
  EXPECT_EQ(stats.num_device_waits, 0);
}

}  // namespace
}  // namespace quire::testing
