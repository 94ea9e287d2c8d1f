// Gemma on a GPU: two KV groups with different windows, soft caps, QK-norms, and kernels that no
// other family uses. In F32 the results of a GPU and a CPU differ only by the order of sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cuda/platform/gpu_engine.h"

namespace quire::testing {
namespace {

struct GemmaCase {
  const char* name;
  const char* architecture;
  const char* fields;
};

constexpr GemmaCase kCases[] = {
    {"gemma2", "Gemma2ForCausalLM",
     R"("head_dim":64,"attn_logit_softcapping":5.0,"final_logit_softcapping":4.0,)"
     R"("query_pre_attn_scalar":32)"},
    {"gemma3", "Gemma3ForCausalLM",
     R"("head_dim":256,"sliding_window_pattern":3,"rope_scaling":{"rope_type":"linear","factor":8})"},
};

EngineConfig tiny_gemma(const GemmaCase& spec, const std::string& device) {
  EngineConfig config;
  config.model =
      write_config(std::string("quire_") + spec.name,
                   std::string(R"({"architectures":[")") + spec.architecture +
                       R"("],"hidden_size":64,"intermediate_size":112,"num_hidden_layers":3,)"
                       R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":96,)"
                       R"("max_position_embeddings":512,"sliding_window":24,)"
                       R"("eos_token_id":2,"torch_dtype":"float32",)" +
                       spec.fields + "}");
  config.load_format = "dummy";
  config.device = device;
  config.dtype = "f32";
  config.kv_cache_dtype = "f32";
  config.num_threads = 2;
  config.kv_cache_memory = int64_t{64} << 20;
  return config;
}

class GpuGemma : public GpuTest, public ::testing::WithParamInterface<GemmaCase> {};

TEST_P(GpuGemma, OutputsEqualTheCpus) {
  const std::vector<Collected> expected =
      run_all(*make_engine(tiny_gemma(GetParam(), "cpu")), mixed_requests());
  for (const std::string& backend : served_backends(tiny_gemma(GetParam(), "cuda"))) {
    for (const bool eager : {false, true}) {
      EngineConfig config = tiny_gemma(GetParam(), "cuda");
      config.attention_backend = backend;
      config.enforce_eager = eager;
      const auto engine = make_engine(config);
      EXPECT_LE(count_differences(run_all(*engine, mixed_requests()), expected), kMaxTies)
          << backend << (eager ? ", eager" : ", by graphs");
    }
  }
}

// In BF16 the kernels of the common path run. A random model has no reference outputs in BF16, so
// the ids are compared with those of a second run.
TEST_P(GpuGemma, Bf16GivesTheSameBitsAgain) {
  EngineConfig config = tiny_gemma(GetParam(), "cuda");
  config.dtype = "bf16";
  config.kv_cache_dtype = "auto";
  config.enable_prefix_caching = false;  // a hit would change the prompt's steps
  const auto engine = make_engine(config);
  const std::vector<Collected> first = run_all(*engine, {mixed_requests()[5]});
  ASSERT_EQ(first.front().error.message(), "");
  EXPECT_EQ(count_differences(run_all(*engine, {mixed_requests()[5]}), first), 0);
}

INSTANTIATE_TEST_SUITE_P(Generations, GpuGemma, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire::testing
