// Engines on a GPU that draft by lookup: the outputs equal those of a CPU without drafts, and
// drafts are accepted.
#include <fmt/format.h>

#include "cuda/base/memory.h"
#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

// Prompts that repeat a phrase. A greedy output of the tiny model ends in a loop.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < 32; ++i) {
    const std::vector<int32_t> phrase = tiny_prompt(1 + i % 9, static_cast<uint64_t>(i % 12));
    std::vector<int32_t> prompt;
    for (int k = 0; k < 1 + i % 7; ++k) prompt.insert(prompt.end(), phrase.begin(), phrase.end());
    all.push_back(greedy(prompt, 1 + (i * 29) % 90));
    if (i % 6 == 0) all.back().sampling.repetition_penalty = 1.3F;
    if (i % 5 == 0) all.back().sampling.logprobs = 2;
  }
  return all;
}

const std::vector<Collected>& expected() {
  static const std::vector<Collected> outputs = cpu_answers(requests());
  return outputs;
}

std::vector<std::string> configs() {
  std::vector<std::string> all;
  for (const int num_drafts : {1, 4, 8}) {
    all.push_back(fmt::format(R"({{"method": "ngram", "num_speculative_tokens": {},
                                   "prompt_lookup_min": 1, "prompt_lookup_max": 4}})",
                              num_drafts));
    all.push_back(
        fmt::format(R"({{"method": "suffix", "num_speculative_tokens": {}}})", num_drafts));
  }
  return all;
}

class GpuLookup : public GpuTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(GpuLookup, OutputsEqualThoseWithoutDrafts) {
  for (const std::string& speculation : configs()) {
    SCOPED_TRACE(speculation);
    EngineConfig config = tiny_f32("cuda");
    GetParam().change(config);
    config.speculative_config = speculation;
    const auto engine = make_engine(config);
    const int64_t num_allocations = cuda::num_allocations();
    const std::vector<Collected> outputs = run_all(*engine, requests());
    EXPECT_LE(count_differences(outputs, expected()), kMaxTies);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(outputs[i].finish_reason, expected()[i].finish_reason);
      EXPECT_EQ(outputs[i].logprobs.size(), expected()[i].logprobs.size());
    }
    const EngineStats stats = stats_at_rest(*engine);
    EXPECT_GT(stats.speculation.num_accepted, 0) << "the outputs end in loops";
    EXPECT_LE(stats.num_device_to_host_copies, stats.num_steps) << "at most one copy per step";
    EXPECT_EQ(cuda::num_allocations(), num_allocations) << "a step allocates nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, GpuLookup, ::testing::ValuesIn(common_variants()), name_of);

}  // namespace
}  // namespace quire::testing
