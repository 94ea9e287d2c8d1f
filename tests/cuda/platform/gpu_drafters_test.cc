// Models that draft on a GPU: the outputs equal those of a CPU without drafts, and as many drafts
// are accepted as on a CPU, which shows that the drafter's keys and values are right in every page.
#include <fmt/format.h>

#include "cuda/platform/gpu_engine.h"
#include "engine/tiny_drafters.h"

namespace quire::testing {
namespace {

// In F32, as tiny_f32().
EngineConfig on_device(EngineConfig config, const std::string& device) {
  const EngineConfig sizes = tiny_f32(device);
  config.device = sizes.device;
  config.dtype = sizes.dtype;
  config.max_num_seqs = sizes.max_num_seqs;
  config.max_num_batched_tokens = sizes.max_num_batched_tokens;
  config.kv_cache_memory = sizes.kv_cache_memory;
  return config;
}

EngineConfig without_drafts(EngineConfig config) {
  config.speculative_config.clear();
  return config;
}

std::vector<Collected> outputs_of_cpu(const EngineConfig& config,
                                      const std::vector<Request>& requests) {
  return run_all(*make_engine(on_device(without_drafts(config), "cpu")), requests);
}

// Accepted drafts per sequence and step.
double accepted_per_span(const SpeculationStats& drafts) {
  return static_cast<double>(drafts.num_accepted) / static_cast<double>(drafts.num_spans);
}

double accepted_share(const SpeculationStats& drafts) {
  return static_cast<double>(drafts.num_accepted) / static_cast<double>(drafts.num_drafts);
}

class GpuDrafters : public GpuTest, public ::testing::WithParamInterface<Variant> {
 protected:
  static std::unique_ptr<Engine> make_gpu_engine(const EngineConfig& config) {
    EngineConfig on_gpu = on_device(config, "cuda");
    GetParam().change(on_gpu);
    // A variant with little memory means it for a model of two layers, without a drafter.
    if (on_gpu.kv_cache_memory < int64_t{1} << 20) on_gpu.kv_cache_memory *= 4;
    return make_engine(on_gpu);
  }

  // Runs the requests twice: the second time, their prompts are in the prefix cache.
  static SpeculationStats expect_outputs(const EngineConfig& config,
                                         const std::vector<Request>& requests) {
    const auto engine = make_gpu_engine(config);
    const std::vector<Collected> expected = outputs_of_cpu(config, requests);
    for (int round = 0; round < 2; ++round) {
      EXPECT_LE(count_differences(run_all(*engine, requests), expected), kMaxTies);
    }
    return stats_at_rest(*engine).speculation;
  }

  // Runs the requests once on a CPU.
  static SpeculationStats drafts_of_cpu(const EngineConfig& config) {
    const auto engine = make_engine(on_device(config, "cpu"));
    run_all(*engine, eagle_requests());
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_GT(drafts.num_accepted, 50);
    return drafts;
  }

  // Also compares the share of accepted drafts with that on a CPU.
  static void expect_drafts_of_cpu(const EngineConfig& config) {
    const SpeculationStats on_gpu = expect_outputs(config, eagle_requests());
    EXPECT_NEAR(accepted_share(on_gpu), accepted_share(drafts_of_cpu(config)), 0.02);
    EXPECT_GT(on_gpu.verify_seconds, 0);
    EXPECT_GT(on_gpu.draft_seconds, 0);
  }
};

TEST_P(GpuDrafters, AModelThatDraftsForItselfSeesItsDraftsAccepted) {
  for (const EngineConfig& config : {tiny_config(), tiny_windows_config()}) {
    for (const int num_drafts : {1, 2, 5}) {
      SCOPED_TRACE(num_drafts);
      const SpeculationStats drafts =
          expect_outputs(with_drafter(config, config.model, num_drafts), greedy_requests());
      EXPECT_GT(drafts.num_drafts, 100);
      EXPECT_GT(accepted_share(drafts), 0.98) << "all but nearly equal logits";
    }
  }
}

// While many sequences decode, a step has one query token, as a pass of the drafter has: the two
// must not mix their attention. A wrong state of the drafter shows in its later drafts.
TEST_P(GpuDrafters, AModelReadsStepsWithoutDrafts) {
  EngineConfig config = tiny_config();
  config.speculative_config = fmt::format(
      R"({{"method": "draft_model", "model": "{}", "num_speculative_tokens": 4,
           "num_speculative_tokens_per_batch_size": [[3, 1024, 0]],
           "enable_adaptive_verification": false}})",
      config.model);
  const SpeculationStats drafts = expect_outputs(config, greedy_requests());
  EXPECT_GT(drafts.num_drafts, 10);
  EXPECT_GT(accepted_share(drafts), 0.98);
}

// The number of drafts changes from step to step.
TEST_P(GpuDrafters, AnAdaptiveNumberOfDraftsKeepsTheOutputs) {
  EngineConfig config = tiny_config();
  config.speculative_config = fmt::format(
      R"({{"method": "draft_model", "model": "{}", "num_speculative_tokens": 4}})", config.model);
  const SpeculationStats drafts = expect_outputs(config, greedy_requests());
  EXPECT_GE(static_cast<double>(drafts.num_accepted),
            0.98 * static_cast<double>(drafts.num_drafts));
}

TEST_P(GpuDrafters, AStepCopiesItsResultsOnce) {
  const EngineConfig config = tiny_config();
  const auto engine = make_gpu_engine(with_drafter(config, config.model, 4));
  run_all(*engine, greedy_requests());
  const EngineStats stats = stats_at_rest(*engine);
  EXPECT_LE(stats.num_device_to_host_copies, stats.num_steps);
}

TEST_P(GpuDrafters, AnotherModelDrafts) {
  const SpeculationStats drafts = expect_outputs(
      with_drafter(tiny_config(), tiny_windows_config().model, 4), sampled_requests());
  EXPECT_GT(drafts.num_drafts, 0);
  EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
}

TEST_P(GpuDrafters, AnEagleHeadDraftsAsOnACpu) {
  for (const int num_drafts : {1, 2, 4, 7}) {
    SCOPED_TRACE(num_drafts);
    expect_drafts_of_cpu(with_drafter(eagle_target(), eagle_head(), num_drafts, "eagle3"));
  }
}

TEST_P(GpuDrafters, AnMtpLayerDraftsAsOnACpu) {
  for (const EngineConfig& target : {mimo_target(), qwen_target(false), qwen_target(true)}) {
    for (const int num_drafts : {1, 4}) {
      SCOPED_TRACE(fmt::format("{}, {} drafts", target.model, num_drafts));
      expect_drafts_of_cpu(with_drafter(target, "", num_drafts, "mtp"));
    }
  }
}

TEST_P(GpuDrafters, AGemma4DrafterKeepsTheOutputs) {
  for (const int num_drafts : {1, 4}) {
    SCOPED_TRACE(num_drafts);
    const SpeculationStats drafts = expect_outputs(
        with_drafter(gemma4_target(), gemma4_drafter(), num_drafts, "mtp"), eagle_requests());
    EXPECT_GT(drafts.num_accepted, 50);
    EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
  }
}

// A random block drafter is right about as often as a guess, so the tolerance is narrow. On a CPU
// the number of accepted drafts changes by 13 % or more without the context, and with DFlash by 29
// % with another mask token.
TEST_P(GpuDrafters, ABlockDrafterDraftsAsOnACpu) {
  for (const std::string method : {"dflash", "dspark"}) {
    for (const int num_drafts : {1, 4, 7}) {
      SCOPED_TRACE(method + " with " + std::to_string(num_drafts));
      const EngineConfig config =
          with_drafter(eagle_target(), block_drafter(method), num_drafts, method);
      const double on_cpu = accepted_per_span(drafts_of_cpu(config));
      const SpeculationStats on_gpu = expect_outputs(config, eagle_requests());
      EXPECT_NEAR(accepted_per_span(on_gpu), on_cpu, 0.06 * on_cpu);
    }
  }
}

TEST_P(GpuDrafters, ABlockDrafterDraftsFromAPartOfTheVocabulary) {
  for (const std::string method : {"dflash", "dspark"}) {
    SCOPED_TRACE(method);
    const EngineConfig config =
        with_drafter(eagle_target(), speculators_block_drafter(method), 4, method);
    const double on_cpu = accepted_per_span(drafts_of_cpu(config));
    const SpeculationStats on_gpu = expect_outputs(config, eagle_requests());
    EXPECT_NEAR(accepted_per_span(on_gpu), on_cpu, 0.06 * on_cpu);
  }
}

TEST_P(GpuDrafters, ABlockDrafterSamplesItsDrafts) {
  for (const std::string method : {"dflash", "dspark"}) {
    EngineConfig config = with_drafter(eagle_target(), block_drafter(method), 4, method);
    config.speculative_config.insert(1, R"("draft_sample_method": "probabilistic", )");
    const auto engine = make_gpu_engine(config);
    for (const Collected& output : run_all(*engine, eagle_requests())) {
      EXPECT_EQ(output.token_ids.size(), 40) << output.error.message();
    }
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_GT(drafts.num_accepted, 50);
    EXPECT_LT(drafts.num_accepted, drafts.num_drafts);
  }
}

TEST_P(GpuDrafters, ABlockDrafterSharesBlocksWithWindows) {
  const SpeculationStats drafts =
      expect_outputs(with_drafter(tiny_windows_config(), block_drafter("dspark", 96), 4, "dspark"),
                     sampled_requests());
  EXPECT_GT(drafts.num_drafts, 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, GpuDrafters, ::testing::ValuesIn(common_variants()), name_of);

// Every draft is accepted, so the outputs have all of them. At the end of an output, a CPU makes
// only the drafts that it still needs.
TEST_F(GpuTest, AGemma4DrafterDraftsAsOnACpu) {
  constexpr size_t kNumTokens = 40;
  constexpr size_t kNumDrafts = 3;
  std::vector<Request> requests = eagle_requests();
  requests.resize(12);
  for (Request& request : requests) request = greedy(request.prompt_token_ids, kNumTokens);
  const auto outputs_on = [&](const char* device, bool eager) {
    EngineConfig config =
        on_device(with_drafter(gemma4_target(), gemma4_drafter(), kNumDrafts, "mtp"), device);
    config.speculative_config.insert(
        1, R"("rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [1, 1, 1],)");
    config.max_num_batched_tokens = 2048;
    config.enforce_eager = eager;
    std::vector<Collected> outputs = run_all(*make_engine(config), requests);
    for (Collected& output : outputs) {
      EXPECT_EQ(output.token_ids.size(), kNumTokens) << output.error.message();
      output.token_ids.resize(kNumTokens - kNumDrafts);
    }
    return outputs;
  };
  const std::vector<Collected> expected = outputs_on("cpu", false);
  for (const bool eager : {false, true}) {
    EXPECT_LE(count_differences(outputs_on("cuda", eager), expected), kMaxTies) << eager;
  }
}

// Heads of delta nets of 128 have other kernels.
TEST_F(GpuTest, AnMtpLayerDraftsOverLargeStatesAsOnACpu) {
  const auto engine_on = [](const char* device, bool drafts) {
    EngineConfig config = on_device(qwen_target(true, 128, 128), device);
    config.kv_cache_memory = int64_t{256} << 20;
    return make_engine(drafts ? with_drafter(config, "", 3, "mtp") : config);
  };
  const std::vector<Collected> expected = run_all(*engine_on("cpu", false), eagle_requests());
  const auto share_on = [&](const char* device) {
    const auto engine = engine_on(device, true);
    EXPECT_LE(count_differences(run_all(*engine, eagle_requests()), expected), kMaxTies);
    return accepted_share(stats_at_rest(*engine).speculation);
  };
  EXPECT_NEAR(share_on("cuda"), share_on("cpu"), 0.02);
}

// The layer is quantized as the others are.
TEST_F(GpuTest, AnMtpLayerWithExpertsDraftsInFp8) {
  EngineConfig config;
  config.model = write_config("quire_qwen_fp8", R"({
      "architectures": ["Qwen3_5MoeForCausalLM"], "hidden_size": 256, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 8,
      "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
      "shared_expert_intermediate_size": 128, "max_position_embeddings": 512,
      "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 128,
      "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "tie_word_embeddings": false,
      "torch_dtype": "bfloat16"})");
  config.load_format = "dummy";
  config.quantization = "fp8";
  config.device = "cuda";
  config.max_num_seqs = 16;
  config.kv_cache_memory = int64_t{256} << 20;
  config.speculative_config =
      R"({"method": "auto", "num_speculative_tokens": 3, "enable_adaptive_verification": false})";
  const auto engine = make_engine(config);
  EXPECT_EQ(engine->model_info().speculative_method, "mtp");
  for (const Collected& output : run_all(*engine, eagle_requests())) {
    EXPECT_EQ(output.token_ids.size(), 40) << output.error.message();
  }
  const SpeculationStats drafts = stats_at_rest(*engine).speculation;
  EXPECT_GT(drafts.num_drafts, 100);
  EXPECT_GT(drafts.num_accepted, 50);
}

// While more than two sequences decode, no drafts are wanted, and the drafter only writes keys and
// values. The drafts of those that remain are as good as if it had always drafted.
TEST_F(GpuTest, EmbeddedDraftersReadStepsWithoutDrafts) {
  const auto share_with = [](const std::string& method, const std::string& options) {
    EngineConfig config = embedded("cuda");
    config.speculative_config = fmt::format(
        R"({{"method": "{}", "enable_adaptive_verification": false{}}})", method, options);
    const auto engine = make_engine(config);
    const std::vector<Request> questions = testing::questions(*engine);
    for (size_t i = 0; i + 4 <= questions.size(); i += 2) {
      std::vector<Request> requests(questions.begin() + static_cast<ptrdiff_t>(i),
                                    questions.begin() + static_cast<ptrdiff_t>(i + 4));
      requests[2].sampling.max_tokens = requests[3].sampling.max_tokens = 3;
      for (const Collected& output : run_all(*engine, requests)) {
        EXPECT_TRUE(output.error.ok()) << output.error.message();
      }
    }
    const SpeculationStats drafts = stats_at_rest(*engine).speculation;
    EXPECT_GT(drafts.num_drafts, 40);
    return accepted_share(drafts);
  };
  for (const auto& [method, num_drafts] : {std::pair("eagle3", 4), std::pair("dflash", 7)}) {
    SCOPED_TRACE(method);
    const std::string k = fmt::format(R"(, "num_speculative_tokens": {})", num_drafts);
    const std::string ranges = R"(, "num_speculative_tokens_per_batch_size": [[3, 1024, 0]])";
    EXPECT_NEAR(share_with(method, k + ranges), share_with(method, k), 0.2);
  }
}

}  // namespace
}  // namespace quire::testing
