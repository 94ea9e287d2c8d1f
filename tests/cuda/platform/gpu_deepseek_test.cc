// DeepSeek's multi-head latent attention on a GPU, in models without experts. In F32 the results of
// a GPU and a CPU differ only by the order of sums.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/platform/gpu_engine.h"

namespace quire {
namespace {

using testing::Collected;
using testing::count_differences;
using testing::GpuTest;
using testing::greedy;
using testing::kMaxTies;
using testing::make_engine;
using testing::run_all;
using testing::served_backends;
using testing::tiny_prompt;

struct DeepSeekCase {
  const char* name;
  int num_heads;
  int latent_dim;
  int rope_dim;
};

// The widths of the tests' model, and of every published one.
constexpr DeepSeekCase kCases[] = {{"tiny", 4, 32, 8}, {"wide", 16, 512, 64}};

EngineConfig tiny_deepseek(const DeepSeekCase& spec, const std::string& device) {
  EngineConfig config;
  config.model = testing::write_config(
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

// Prompt lengths from 1 to 160. Every third prompt begins like the first ones, so the prefix cache
// serves it.
std::vector<Request> requests() {
  std::vector<Request> all;
  for (int i = 0; i < 24; ++i) {
    all.push_back(
        greedy(tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i % 3)), 12 + i % 9));
  }
  return all;
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
        ASSERT_NE(engine, nullptr);
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
    ASSERT_NE(engine, nullptr);
    const std::vector<Collected> first = run_all(*engine, {requests()[5]});
    ASSERT_EQ(first.front().error.message(), "");
    EXPECT_EQ(count_differences(run_all(*engine, {requests()[5]}), first), 0);
  }
}

TEST_F(GpuTest, FlashInferServesThePublishedLatentWidths) {
  EngineConfig config = tiny_deepseek(kCases[1], "cuda");
  config.dtype = "bf16";
  config.kv_cache_dtype = "auto";
  EXPECT_THAT(served_backends(config), ::testing::Contains("flashinfer"));
}

INSTANTIATE_TEST_SUITE_P(Widths, GpuDeepSeek, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire
