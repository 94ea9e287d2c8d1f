// Several GPUs that share a model give the answers of one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/base/device_info.h"
#include "cuda/platform/gpu_engine.h"
#include "engine/tiny_drafters.h"
#include "engine/tiny_families.h"
#include "model/config.h"
#include "support/fp8_checkpoint.h"
#include "support/random_mixtures.h"
#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

class GpuRanks : public GpuTest {
 protected:
  void SetUp() override {
    const Status second = cuda_status(1);
    if (!second.ok()) GTEST_SKIP() << second.message();
  }
};

EngineConfig with_ranks(EngineConfig config, int num_ranks, bool eager = false) {
  config.device = "cuda";
  config.tensor_parallel_size = num_ranks;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 256;
  config.kv_cache_memory = int64_t{64} << 20;
  config.enforce_eager = eager;
  return config;
}

std::vector<Collected> run(const EngineConfig& config, const std::vector<Request>& all) {
  return run_all(*make_engine(config), all);
}

std::vector<Request> requests() {
  std::vector<Request> all;
  for (const int length : {1, 7, 30, 64}) {
    all.push_back(greedy(tiny_prompt(length, 5), 24));
    all.back().sampling.logprobs = 1;
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

// The mean difference of log probabilities, up to the first token that differs.
double mean_error(const std::vector<Collected>& got, const std::vector<Collected>& expected) {
  double sum = 0;
  double count = 0;
  EXPECT_EQ(got.size(), expected.size());
  const auto add = [&](const std::vector<PositionLogprobs>& a,
                       const std::vector<PositionLogprobs>& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].empty() || b[i].empty()) continue;
      if (a[i][0].token_id != b[i][0].token_id) return;
      sum += std::abs(double{a[i][0].logprob} - double{b[i][0].logprob});
      count += 1;
    }
  };
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_TRUE(got[i].error.ok()) << got[i].error.message();
    add(got[i].prompt_logprobs, expected[i].prompt_logprobs);
    add(got[i].logprobs, expected[i].logprobs);
  }
  EXPECT_GT(count, 0);
  return sum / count;
}

class GpuFamilies : public GpuRanks, public ::testing::WithParamInterface<TinyFamily> {};

TEST_P(GpuFamilies, GiveTheLogitsOfOneGpu) {
  const EngineConfig config = config_of(GetParam());
  const auto of = [&](const char* dtype, int num_ranks, bool eager) {
    EngineConfig typed = with_ranks(config, num_ranks, eager);
    typed.dtype = dtype;
    return run(typed, requests());
  };
  const auto f32 = of("f32", 1, false);
  EXPECT_LT(mean_error(of("f32", 2, false), f32), 1e-5);
  EXPECT_LT(mean_error(of("f32", 2, true), f32), 1e-5);
  EXPECT_LT(mean_error(of("bf16", 2, false), of("bf16", 1, false)), 5e-3);
}

INSTANTIATE_TEST_SUITE_P(All, GpuFamilies, ::testing::ValuesIn(tiny_families()),
                         [](const auto& family) { return std::string(family.param.name); });

// Models whose MLPs have 5 blocks of 128, or experts of 3. Equal parts would cut a block; of 4
// ranks the last has no block of an expert.
constexpr std::pair<std::string_view, std::string_view> kCutModels[] = {
    {"LlamaForCausalLM", R"("intermediate_size": 640,)"},
    {"Qwen3MoeForCausalLM",
     R"("intermediate_size": 640, "moe_intermediate_size": 384, "num_experts": 6,
        "num_experts_per_tok": 2, "norm_topk_prob": true, "mlp_only_layers": [1],)"}};

// A CPU does not round activations, so that one GPU has errors, too: 0.09 to 0.11, depending on the
// kernels that it measures as faster. A block with a wrong scale, or that is missing or counted
// twice, has much larger ones.
TEST_F(GpuRanks, HaveWholeBlocksOfFp8) {
  if (cuda::open_device(0)->device.compute_capability != 90) {
    GTEST_SKIP() << "products with FP8 weights need compute capability 9.0";
  }
  for (const auto& [architecture, fields] : kCutModels) {
    const std::string json = fmt::format(
        R"({{"architectures": ["{}"], {} "hidden_size": 256, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 101,
            "max_position_embeddings": 128, "torch_dtype": "bfloat16"}})",
        architecture, fields);
    const ModelConfig model = parse_model_config(json, "config.json").value();
    const Fp8Checkpoint checkpoint =
        quantize_checkpoint(json, random_weights(model), Fp8Tool::kHuggingFaceBlock);
    const ScratchDirectory directory;
    directory.write("config.json", checkpoint.config_json);
    directory.write("model.safetensors", safetensors_file(checkpoint.tensors));
    EngineConfig config;
    config.model = directory.path();
    EngineConfig on_cpu = with_ranks(config, 1);
    on_cpu.device = "cpu";
    const auto expected = run(on_cpu, requests());
    const double error_of_one = mean_error(run(with_ranks(config, 1), requests()), expected);
    EXPECT_LT(error_of_one, 0.15);
    for (const int num_ranks : {2, 4}) {
      if (!cuda_status(num_ranks - 1).ok()) continue;
      for (const bool eager : {false, true}) {
        const auto got = run(with_ranks(config, num_ranks, eager), requests());
        const double error = mean_error(got, expected);
        fmt::print("{} on {} GPUs: mean error {:.5f}, on one {:.5f}\n", architecture, num_ranks,
                   error, error_of_one);
        EXPECT_LT(error, 1.5 * error_of_one + 1e-3);
      }
    }
  }
}

TEST_F(GpuRanks, AnswerQuestionsAsOneGpu) {
  std::vector<Request> questions;
  for (int i = 0; i < 24; ++i) {
    Request request;
    request.prompt = fmt::format("<|user|>What is {} + {}?<|end|><|assistant|>", i * 7, 3 + i * i);
    request.sampling.temperature = 0.0F;
    request.sampling.max_tokens = 40;
    questions.push_back(request);
  }
  const auto of = [&](int num_ranks) {
    EngineConfig config = embedded("cuda");
    config.tensor_parallel_size = num_ranks;
    return run(config, questions);
  };
  const auto expected = of(1);
  const auto got = of(2);
  ASSERT_EQ(got.size(), questions.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].text, expected[i].text) << i;
}

// Requests without log probabilities are chosen from the ranks' parts of the logits, and those with
// them from whole rows. One request after another, so that all its steps have the same rows and
// with them the same logits.
TEST_F(GpuRanks, ChooseTheSameTokensFromPartsAndFromWholeRows) {
  std::vector<Request> all;
  for (const auto& [temperature, n] :
       {std::pair(0.0F, 1), std::pair(1.0F, 1), std::pair(1.0F, 4)}) {
    for (const int length : {1, 7, 30, 64}) {
      all.push_back(greedy(tiny_prompt(length, 5), 24));
      all.back().sampling.temperature = temperature;
      all.back().sampling.n = n;
      all.back().sampling.seed = 17;
    }
  }
  const auto tokens = [](Engine& engine, Request request, std::optional<int> logprobs) {
    request.sampling.logprobs = logprobs;
    for (int32_t& id : request.prompt_token_ids) id %= engine.model_info().vocab_size;
    std::vector<std::vector<int32_t>> of_samples;
    const auto stream = engine.submit(request).value();
    for (const Collected& sample : collect_all(*stream)) {
      EXPECT_TRUE(sample.error.ok()) << sample.error.message();
      of_samples.push_back(sample.token_ids);
    }
    return of_samples;
  };
  const std::vector<EngineConfig> models = {tiny_config(), config_of(tiny_families().back()),
                                            with_drafter(eagle_target(), "", 3, "ngram")};
  for (const EngineConfig& model : models) {
    for (const int num_ranks : {2, 4}) {
      if (!cuda_status(num_ranks - 1).ok()) continue;
      for (const bool eager : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}, {} ranks, eager {}", model.model, model.speculative_config,
                                 num_ranks, eager));
        EngineConfig config = with_ranks(model, num_ranks, eager);
        config.enable_prefix_caching = false;
        const auto engine = make_engine(config);
        for (size_t i = 0; i < all.size(); ++i) {
          EXPECT_EQ(tokens(*engine, all[i], std::nullopt), tokens(*engine, all[i], 0)) << i;
        }
      }
    }
  }
}

// Launches of kernels on the first GPU while `work` runs, by their names.
std::map<std::string, int64_t> count_launches(DeviceProfiler& profiler,
                                              const std::function<void()>& work) {
  std::map<std::string, int64_t> counts;
  EXPECT_EQ(profiler.start().message(), "");
  work();
  const auto profile = profiler.stop();
  EXPECT_EQ(profile.status().message(), "");
  if (!profile.ok()) return counts;
  for (const ProfileShare& kernel : profile->kernels) counts[kernel.name] = kernel.count;
  return counts;
}

// Counts launches, because neither changes the answers. The layers are those of an 8B model,
// because separate kernels may be faster in smaller ones; the log has the times of both.
TEST_F(GpuRanks, FuseLayerTailsAndChooseTokensFromParts) {
  if (cuda::open_device(0)->device.compute_capability != 90) {
    GTEST_SKIP() << "fused layer tails need compute capability 9.0";
  }
  const auto profiler = make_device_profiler(0);
  if (!profiler.ok()) GTEST_SKIP() << profiler.status().message();
  constexpr int kNumLayers = 3;
  const ScratchDirectory directory;
  directory.write("config.json", R"({"architectures": ["LlamaForCausalLM"],
      "num_hidden_layers": 3, "hidden_size": 4096, "intermediate_size": 14336,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 1024,
      "max_position_embeddings": 128, "torch_dtype": "bfloat16"})");
  EngineConfig model;
  model.model = directory.path();
  model.load_format = "dummy";
  for (const int num_ranks : {2, 4}) {
    if (!cuda_status(num_ranks - 1).ok()) continue;
    for (const bool eager : {false, true}) {
      SCOPED_TRACE(fmt::format("{} ranks, eager {}", num_ranks, eager));
      const auto engine = make_engine(with_ranks(model, num_ranks, eager));
      for (const auto logprobs : {std::optional<int>(), std::optional<int>(0)}) {
        Request request = greedy(tiny_prompt(7, 5), 24);
        request.sampling.logprobs = logprobs;
        const int64_t steps_before = stats_at_rest(*engine).num_steps;
        auto counts = count_launches(**profiler, [&] { run_all(*engine, {request}); });
        const int64_t num_steps = stats_at_rest(*engine).num_steps - steps_before;
        EXPECT_GE(num_steps, 24);
        EXPECT_EQ(counts["layer_tail_gemm_kernel"], kNumLayers * (num_steps - 1))
            << "every step but that of the prompt has one token";
        EXPECT_EQ(counts["choose_best_kernel"], logprobs ? 0 : num_steps);
      }
    }
  }
}

// Every step has requests of both kinds.
TEST_F(GpuRanks, MixRequestsThatNeedWholeRows) {
  std::vector<Request> all = requests();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].sampling.prompt_logprobs = std::nullopt;
    if (i % 2 == 0) all[i].sampling.logprobs = std::nullopt;
  }
  EngineConfig config = tiny_config();
  config.dtype = "f32";
  const auto expected = run(with_ranks(config, 1), all);
  const auto got = run(with_ranks(config, 2), all);
  ASSERT_EQ(got.size(), all.size());
  EXPECT_LE(count_differences(got, expected), 1);
}

std::vector<EngineConfig> drafters() {
  std::vector<EngineConfig> all = {
      with_drafter(eagle_target(), "", 3, "ngram"),
      with_drafter(eagle_target(), eagle_target().model, 3),
      with_drafter(eagle_target(), eagle_head(), 3, "eagle3"),
      with_drafter(mimo_target(), "", 1, "mtp"),
      with_drafter(qwen_target(true), "", 3, "mtp"),
      with_drafter(eagle_target(), block_drafter("dflash"), 3, "dflash")};
  for (EngineConfig& config : all) config.dtype = "f32";
  return all;
}

void expect_nearly_same(const std::vector<Collected>& got, const std::vector<Collected>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  size_t num_equal = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].error.ok()) << got[i].error.message();
    num_equal += got[i].token_ids == expected[i].token_ids;
  }
  // A number next to the border between two tokens may fall on its other side.
  EXPECT_GE(num_equal + 2, got.size());
}

TEST_F(GpuRanks, DividesDraftersWithTheirTargets) {
  for (const EngineConfig& config : drafters()) {
    SCOPED_TRACE(config.speculative_config);
    const auto expected = run(with_ranks(config, 1), eagle_requests());
    expect_nearly_same(run(with_ranks(config, 2), eagle_requests()), expected);
  }
}

// Every rank chooses how many drafts it proposes. If two differed, their collectives would, too.
TEST_F(GpuRanks, VerifyAsManyDraftsAsPay) {
  for (const EngineConfig& config : drafters()) {
    SCOPED_TRACE(config.speculative_config);
    const auto expected = run(with_ranks(config, 1), eagle_requests());
    EngineConfig adaptive = config;
    constexpr std::string_view kFixed = R"("enable_adaptive_verification": false)";
    adaptive.speculative_config.replace(adaptive.speculative_config.find(kFixed), kFixed.size(),
                                        R"("enable_adaptive_verification": true)");
    for (const bool eager : {false, true}) {
      expect_nearly_same(run(with_ranks(adaptive, 2, eager), eagle_requests()), expected);
    }
  }
}

// Drafts that are never accepted cost time, so only probes verify them.
TEST_F(GpuRanks, LeaveOutDraftsThatDoNotPay) {
  EngineConfig config = with_ranks(eagle_target(), 2);
  config.speculative_config = R"({"method": "ngram", "num_speculative_tokens": 3,
      "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0, 0, 0]})";
  const auto engine = make_engine(config);
  for (const Collected& output : run_all(*engine, eagle_requests())) {
    EXPECT_TRUE(output.error.ok()) << output.error.message();
  }
  const SpeculationStats stats = stats_at_rest(*engine).speculation;
  EXPECT_GT(stats.num_spans, 0) << "the first steps try them";
  // eagle_requests() decode for 24 times 40 steps, of which fixed verification would verify 3 each.
  EXPECT_LT(stats.num_drafts, 24 * 40 * 3 / 4);
}

}  // namespace
}  // namespace quire::testing
