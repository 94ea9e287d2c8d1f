// Compares the embedded model on a GPU and on a CPU. Their activations differ (BF16 and F32), so
// each may choose another of two tokens that are nearly equally likely: one output of twenty may
// differ.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

constexpr int kMaxDifferences = kNumQuestions / 20;  // on an H200 there were none

const std::vector<Collected>& cpu_answers() {
  static const std::vector<Collected> answers = [] {
    const auto engine = make_engine(embedded("cpu"));
    return run_all(*engine, questions(*engine));
  }();
  return answers;
}

class GpuEmbedded : public GpuTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(GpuEmbedded, OutputsEqualTheCpus) {
  EngineConfig config = embedded("cuda");
  GetParam().change(config);
  if (const std::string& name = config.attention_backend; name != "auto") {
    const std::vector<std::string> served = served_backends(embedded("cuda"));
    if (std::ranges::find(served, name) == served.end()) {
      GTEST_SKIP() << "this machine lacks " << name;
    }
  }
  const auto engine = make_engine(config);
  const int num_different = count_differences(run_all(*engine, questions(*engine)), cpu_answers());
  RecordProperty("num_different", num_different);
  std::printf("%s: %d of %d answers differ from the CPU's\n", GetParam().name, num_different,
              kNumQuestions);
  EXPECT_LE(num_different, kMaxDifferences);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, GpuEmbedded,
    ::testing::Values(Variant{"auto_graphs", [](EngineConfig&) {}},
                      Variant{"auto_eager", [](EngineConfig& c) { c.enforce_eager = true; }},
                      Variant{"page32", [](EngineConfig& c) { c.block_size = 32; }},
                      Variant{"page64", [](EngineConfig& c) { c.block_size = 64; }},
                      Variant{"native", [](EngineConfig& c) { c.attention_backend = "native"; }},
                      Variant{"flashinfer",
                              [](EngineConfig& c) { c.attention_backend = "flashinfer"; }},
                      Variant{"xqa", [](EngineConfig& c) { c.attention_backend = "xqa"; }},
                      Variant{"cudnn", [](EngineConfig& c) { c.attention_backend = "cudnn"; }}),
    name_of);

class GpuToggle : public GpuTest {};

// --attention-backend names a backend that serves decode alone: it serves decode, auto selects the
// prefill backend, and the engine reports both.
TEST_F(GpuToggle, ABackendOfOnePhaseServesThatPhase) {
  const std::vector<std::string> prefill = served_backends(embedded("cuda"), Phase::kPrefill);
  for (const std::string& name : served_backends(embedded("cuda"), Phase::kDecode)) {
    SCOPED_TRACE(name);
    EngineConfig config = embedded("cuda");
    config.attention_backend = name;
    const auto engine = make_engine(config);
    const bool serves_both = std::ranges::find(prefill, name) != prefill.end();
    const std::string expected = "decode: " + name + ", prefill: ";
    EXPECT_THAT(engine->model_info().attention_backend, ::testing::StartsWith(expected));
    EXPECT_EQ(engine->model_info().attention_backend == expected + name, serves_both);
    // A flag for one phase fails if the backend does not serve that phase.
    config.attention_backend = "auto";
    config.prefill_attention_backend = name;
    EXPECT_EQ(Engine::create(config).ok(), serves_both);
  }
}

class GpuText : public GpuTest {};

struct Text {
  std::string text;
  std::optional<FinishReason> finish_reason;
  std::string stop_reason;
};

Text read_text(Engine& engine, const Request& request) {
  Text read;
  auto stream = engine.submit(request);
  EXPECT_TRUE(stream.ok()) << stream.status().message();
  if (!stream.ok()) return read;
  while (auto output = (*stream)->next()) {
    read.text += output->text;
    if (!output->finish_reason) continue;
    read.finish_reason = output->finish_reason;
    read.stop_reason = output->stop_reason;
  }
  return read;
}

TEST_F(GpuText, EndsAtAStopString) {
  EngineConfig config = embedded("cuda");
  config.enable_prefix_caching = false;  // the second run does the same work
  const auto engine = make_engine(config);
  Request request = questions(*engine, 40).front();
  const std::string whole = read_text(*engine, request).text;
  ASSERT_GT(whole.size(), 12U);
  const std::string stop = whole.substr(whole.size() / 2, 3);
  request.sampling.stop = {stop};
  const Text stopped = read_text(*engine, request);
  EXPECT_EQ(stopped.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.stop_reason, stop);
}

TEST_F(GpuText, PromptLogprobsAreNearTheCpus) {
  const auto gpu = make_engine(embedded("cuda"));
  const auto cpu = make_engine(embedded("cpu"));
  Request request = questions(*gpu, 1).front();
  request.sampling.prompt_logprobs = 0;
  const Collected got = run_all(*gpu, {request}).front();
  const Collected expected = run_all(*cpu, {request}).front();
  ASSERT_EQ(got.prompt_logprobs.size(), expected.prompt_logprobs.size());
  ASSERT_GT(got.prompt_logprobs.size(), 20U);
  double sum = 0.0;
  for (size_t i = 1; i < got.prompt_logprobs.size(); ++i) {
    ASSERT_EQ(got.prompt_logprobs[i].size(), 1U);
    sum += std::abs(got.prompt_logprobs[i][0].logprob - expected.prompt_logprobs[i][0].logprob);
  }
  EXPECT_LT(sum / static_cast<double>(got.prompt_logprobs.size() - 1), 0.05);
}

}  // namespace
}  // namespace quire::testing
