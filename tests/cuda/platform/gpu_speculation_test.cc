// Steps that verify drafts on a GPU, in graphs and eagerly: the outputs equal those of a CPU
// without drafts, for any drafts and any number of accepted ones per step.
#include "cuda/platform/device_drafter.h"
#include "cuda/platform/gpu_engine.h"
#include "start/start.h"

namespace quire::testing {
namespace {

std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < 48; ++i) {
    all.push_back(
        greedy(tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i % 20)), 2 + (i * 5) % 30));
    if (i % 3 == 0) all.back().sampling.repetition_penalty = 1.3F;
    if (i % 5 == 0) all.back().sampling.logprobs = 2;
  }
  return all;
}

const std::vector<Collected>& expected() {
  static const std::vector<Collected> outputs = cpu_answers(requests());
  return outputs;
}

const RecordedOutputs& recorded_outputs() {
  static const RecordedOutputs recorded = [] {
    RecordedOutputs by_prompt;
    const std::vector<Request> all = requests();
    for (size_t i = 0; i < all.size(); ++i) {
      by_prompt[all[i].prompt_token_ids] = expected()[i].token_ids;
    }
    return by_prompt;
  }();
  return recorded;
}

std::unique_ptr<Engine> make_engine(const EngineConfig& config, int num_drafts,
                                    bool is_adaptive = false) {
  auto engine =
      start_engine(config, {.num_drafts = num_drafts,
                            .verification = {.is_adaptive = is_adaptive},
                            .make_drafter = [](DeviceContext&, const DrafterLimits& limits) {
                              return cuda::make_device_drafter(recorded_outputs(), limits);
                            }});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? std::move(*engine) : nullptr;
}

class GpuSpeculation : public GpuTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(GpuSpeculation, OutputsEqualThoseWithoutDrafts) {
  for (const int num_drafts : {0, 1, 3, 4, 8}) {
    SCOPED_TRACE(num_drafts);
    EngineConfig config = tiny_f32("cuda");
    GetParam().change(config);
    const auto engine = make_engine(config, num_drafts);
    const std::vector<Collected> outputs = run_all(*engine, requests());
    EXPECT_LE(count_differences(outputs, expected()), kMaxTies);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].finish_reason, expected()[i].finish_reason);
      EXPECT_EQ(outputs[i].logprobs.size(), expected()[i].logprobs.size());
    }
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_LE(stats.num_device_to_host_copies, stats.num_steps) << "at most one copy per step";
  }
}

// The number of drafts changes from step to step. 7 drafts have query lengths without a graph
// between those that have one.
TEST_P(GpuSpeculation, OutputsWithAdaptiveVerificationEqualThoseWithoutDrafts) {
  for (const int num_drafts : {1, 4, 7}) {
    SCOPED_TRACE(num_drafts);
    EngineConfig config = tiny_f32("cuda");
    GetParam().change(config);
    const auto engine = make_engine(config, num_drafts, true);
    const std::vector<Collected> outputs = run_all(*engine, requests());
    EXPECT_LE(count_differences(outputs, expected()), kMaxTies);
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_LE(stats.num_device_to_host_copies, stats.num_steps) << "at most one copy per step";
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, GpuSpeculation, ::testing::ValuesIn(common_variants()), name_of);

// Log probabilities belong to the logits of their tokens, with drafts too.
TEST_F(GpuTest, SpeculationKeepsLogProbabilitiesAtTheirTokens) {
  const auto engine = make_engine(tiny_f32("cuda"), 4);
  const std::vector<Collected> outputs = run_all(*engine, requests());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].token_ids != expected()[i].token_ids) continue;
    ASSERT_EQ(outputs[i].logprobs.size(), expected()[i].logprobs.size());
    for (size_t t = 0; t < outputs[i].logprobs.size(); ++t) {
      EXPECT_EQ(outputs[i].logprobs[t][0].token_id, outputs[i].token_ids[t]);
      EXPECT_NEAR(outputs[i].logprobs[t][0].logprob, expected()[i].logprobs[t][0].logprob, 1e-3F);
    }
  }
}

}  // namespace
}  // namespace quire::testing
