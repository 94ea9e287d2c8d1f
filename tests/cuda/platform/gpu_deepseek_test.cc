// DeepSeek's multi-head latent attention on a GPU, in models without experts. In F32 the results of
// a GPU and a CPU differ only by the order of sums.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

struct DeepSeekCase {
  const char* name;
  int num_heads;
  int latent_dim;
  int rope_dim;
};

// The widths of the tests' model, and of published ones, also with GLM-4.7-Flash's heads.
constexpr DeepSeekCase kCases[] = {{"tiny", 4, 32, 8}, {"wide", 16, 512, 64}, {"glm", 20, 512, 64}};

EngineConfig tiny_deepseek(const DeepSeekCase& spec, const std::string& device) {
  EngineConfig config;
  config.model = write_config(
      fmt::format("quire_deepseek_{}", spec.name),
      fmt::format(R"({{"architectures":["DeepseekV2ForCausalLM"],"model_type":"deepseek_v2",)"
                  R"("hidden_size":64,"intermediate_size":112,"num_hidden_layers":3,)"
                  R"("num_attention_heads":{0},"num_key_value_heads":{0},"q_lora_rank":24,)"
                  R"("kv_lora_rank":{1},"qk_nope_head_dim":16,"qk_rope_head_dim":{2},)"
                  R"("v_head_dim":24,"vocab_size":96,"max_position_embeddings":512,)"
                  R"("rms_norm_eps":1e-6,"eos_token_id":2,"torch_dtype":"float32"}})",
                  spec.num_heads, spec.latent_dim, spec.rope_dim));
  config.load_format = "dummy";
  config.device = device;
  config.dtype = "f32";
  config.kv_cache_dtype = "f32";
  config.num_threads = 2;
  config.kv_cache_memory = int64_t{64} << 20;
  return config;
}

// Prompts i and i + 3 begin alike, so that the prefix cache serves most of them.
std::vector<Request> requests() {
  return mixed_requests(3);
}

class GpuDeepSeek : public GpuTest, public ::testing::WithParamInterface<DeepSeekCase> {};

TEST_P(GpuDeepSeek, OutputsEqualTheCpus) {
  const std::vector<Collected> expected =
      run_all(*make_engine(tiny_deepseek(GetParam(), "cpu")), requests());
  for (const std::string& backend : served_backends(tiny_deepseek(GetParam(), "cuda"))) {
    for (const bool eager : {false, true}) {
      for (const char* speculation : {"", R"({"method":"ngram","num_speculative_tokens":4})"}) {
        EngineConfig config = tiny_deepseek(GetParam(), "cuda");
        config.attention_backend = backend;
        config.enforce_eager = eager;
        config.speculative_config = speculation;
        const auto engine = make_engine(config);
        EXPECT_LE(count_differences(run_all(*engine, requests()), expected), kMaxTies)
            << backend << (eager ? ", eager " : ", by graphs ") << speculation;
      }
    }
  }
}

// In BF16 the published widths run on FlashInfer's kernel. A random model has no reference outputs
// in BF16, so the ids are compared with those of a second run.
TEST_P(GpuDeepSeek, Bf16GivesTheSameBitsAgain) {
  for (const char* kv_cache_dtype : {"auto", "fp8"}) {
    EngineConfig config = tiny_deepseek(GetParam(), "cuda");
    config.dtype = "bf16";
    config.kv_cache_dtype = kv_cache_dtype;
    config.enable_prefix_caching = false;  // a hit would change the prompt's steps
    const auto engine = make_engine(config);
    const std::vector<Collected> first = run_all(*engine, {requests()[5]});
    ASSERT_EQ(first.front().error.message(), "");
    EXPECT_EQ(count_differences(run_all(*engine, {requests()[5]}), first), 0);
  }
}

TEST_F(GpuTest, FlashInferServesThePublishedLatentWidths) {
  for (const DeepSeekCase& spec : {kCases[1], kCases[2]}) {
    EngineConfig config = tiny_deepseek(spec, "cuda");
    config.dtype = "bf16";
    config.kv_cache_dtype = "auto";
    EXPECT_THAT(served_backends(config), ::testing::Contains("flashinfer")) << spec.name;
  }
}

// A model with the published widths of heads, in BF16 and in steps of 256 tokens: long prompts are
// expanded, after contexts of earlier steps and of the prefix cache.
struct HeadsCase {
  const char* name;
  int num_heads;
  int nope_dim;
  int value_dim;
};

EngineConfig published_heads(const HeadsCase& spec, const std::string& device) {
  EngineConfig config;
  config.model = write_config(
      fmt::format("quire_deepseek_heads_{}", spec.name),
      fmt::format(R"({{"architectures":["DeepseekV2ForCausalLM"],"model_type":"deepseek_v2",)"
                  R"("hidden_size":64,"intermediate_size":112,"num_hidden_layers":2,)"
                  R"("num_attention_heads":{0},"num_key_value_heads":{0},"kv_lora_rank":512,)"
                  R"("qk_nope_head_dim":{1},"qk_rope_head_dim":64,"v_head_dim":{2},)"
                  R"("vocab_size":96,"max_position_embeddings":1024,"rms_norm_eps":1e-6,)"
                  R"("eos_token_id":2,"torch_dtype":"bfloat16"}})",
                  spec.num_heads, spec.nope_dim, spec.value_dim));
  config.load_format = "dummy";
  config.device = device;
  config.num_threads = 2;
  config.max_num_batched_tokens = 256;
  config.max_num_seqs = 8;
  config.kv_cache_memory = int64_t{64} << 20;
  return config;
}

// The log probabilities of all prompt tokens. The second prompt begins as the first, and short ones
// share steps with long ones and with decode.
std::vector<float> prompt_logprobs(const EngineConfig& config) {
  std::vector<float> values;
  const auto engine = make_engine(config);
  std::vector<Request> prompts;
  for (const auto& [length, salt] : {std::pair{700, 1}, {900, 1}, {300, 2}, {5, 3}, {256, 4}}) {
    prompts.push_back(greedy(tiny_prompt(length, static_cast<uint64_t>(salt)), 30));
  }
  // The cache has the first prompt when the others come.
  run_all(*engine, {prompts.front()});
  for (Request& request : prompts) request.sampling.prompt_logprobs = 0;
  for (const Collected& got : run_all(*engine, prompts)) {
    EXPECT_EQ(got.error.message(), "");
    for (const PositionLogprobs& position : got.prompt_logprobs) {
      if (!position.empty()) values.push_back(position.front().logprob);
    }
    for (const PositionLogprobs& position : got.logprobs) values.push_back(position[0].logprob);
  }
  return values;
}

// The root mean square of the differences.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    sum += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
  }
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(a.size(), 1)));
}

class GpuExpandedPrompts : public GpuTest, public ::testing::WithParamInterface<HeadsCase> {};

// The native backend has the absorbed form alone; it gives the error of BF16.
TEST_P(GpuExpandedPrompts, AreAsNearTheCpusAsAbsorbedOnes) {
  for (const char* kv_cache_dtype : {"auto", "fp8"}) {
    EngineConfig cpu = published_heads(GetParam(), "cpu");
    EngineConfig expanded = published_heads(GetParam(), "cuda");
    const std::vector<std::string> backends = served_backends(expanded);
    if (std::ranges::find(backends, "flashinfer") == backends.end()) {
      GTEST_SKIP() << "the GPU does not expand latent vectors";
    }
    for (EngineConfig* config : {&cpu, &expanded}) config->kv_cache_dtype = kv_cache_dtype;
    expanded.prefill_attention_backend = "flashinfer";
    EngineConfig absorbed = expanded;
    absorbed.prefill_attention_backend = "native";
    const std::vector<float> reference = prompt_logprobs(cpu);
    const std::vector<float> from_expanded = prompt_logprobs(expanded);
    const std::vector<float> from_absorbed = prompt_logprobs(absorbed);
    const double noise = difference(from_absorbed, reference);
    const double error = difference(from_expanded, reference);
    RecordProperty(std::string("noise_") + kv_cache_dtype, std::to_string(noise));
    RecordProperty(std::string("error_") + kv_cache_dtype, std::to_string(error));
    EXPECT_LE(error, 1.5 * noise + 1e-3) << kv_cache_dtype;
    EXPECT_LE(noise, 0.1) << kv_cache_dtype;
    EXPECT_GT(difference(from_expanded, from_absorbed), 0.0) << "nothing was expanded";
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, GpuExpandedPrompts,
                         ::testing::Values(HeadsCase{"deepseek", 4, 128, 128},
                                           HeadsCase{"glm", 20, 192, 256}),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Widths, GpuDeepSeek, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire::testing
