// The embedded model and small mixtures of experts with weights in 4 to 8 bits, which stay packed
// on a GPU. A CPU computes with the same integers, and with activations that are about as exact as
// F32, so its outputs are the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <variant>

#include "cuda/platform/gpu_engine.h"
#include "quantize/quantize.h"
#include "support/integer_checkpoint.h"
#include "support/random_mixtures.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "support/source_models.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;

// The mean error of the prompts' log probabilities.
double mean_error(const char* name, const std::vector<Collected>& got,
                  const std::vector<Collected>& expected) {
  double sum = 0;
  int count = 0;
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const auto& numbers = got[i].prompt_logprobs;
    const auto& references = expected[i].prompt_logprobs;
    EXPECT_EQ(numbers.size(), references.size());
    for (size_t j = 0; j < std::min(numbers.size(), references.size()); ++j) {
      if (references[j].empty() || numbers[j].empty()) continue;
      // The first entry belongs to the prompt's token.
      sum += std::abs(numbers[j].front().logprob - references[j].front().logprob);
      ++count;
    }
  }
  EXPECT_GT(count, 0);
  std::printf("%s: the mean error of log probabilities is %.4f\n", name, sum / count);
  return sum / count;
}

struct Format {
  const char* name;
  std::variant<GgufTarget, W4A16Target, IntegerFormat> target;
};

class GpuPacked : public GpuTest, public ::testing::WithParamInterface<Format> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const auto* format = std::get_if<IntegerFormat>(&GetParam().target)) {
      model_ = write_integers(*format);
    } else if (const auto* gguf = std::get_if<GgufTarget>(&GetParam().target)) {
      model_ = write_copy({.model = "", .out = directory_.path() / "copy.gguf", .target = *gguf});
    } else {
      model_ = write_copy({.model = "",
                           .out = directory_.path() / "copy",
                           .target = std::get<W4A16Target>(GetParam().target)});
    }
  }

  std::vector<Collected> outputs(const char* device, int prompt_logprobs) const {
    EngineConfig config = testing::embedded(device);
    config.model = model_;
    return answers_to_questions(config, prompt_logprobs);
  }

 private:
  static std::string write_copy(const QuantizeOptions& options) {
    const Result<QuantizeResult> result = quantize(options);
    EXPECT_EQ(result.status().message(), "");
    return options.out.string();
  }
  std::string write_integers(const IntegerFormat& format) const {
    const fs::path source = abacus_path();
    const SourceModel embedded = abacus_model();
    const IntegerCheckpoint checkpoint =
        quantize_integers(embedded.config, embedded.bytes(), format);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
      directory_.copy(source / name, name);
    }
    directory_.write("config.json", checkpoint.config_json);
    directory_.write("model.safetensors", safetensors_file(checkpoint.tensors));
    return directory_.path().string();
  }

  const ScratchDirectory directory_;
  std::string model_;
};

// Rounding may change the answers of which the model is least certain.
TEST_P(GpuPacked, MostAnswersAreTheCpus) {
  const std::vector<Collected> expected = outputs("cpu", 0);
  const std::vector<Collected> got = outputs("cuda", 0);
  const int num_different = count_differences(got, expected);
  std::printf("%s: %d answers differ from the CPU's\n", GetParam().name, num_different);
  EXPECT_LE(num_different, kNumQuestions / 10);
}

// A wrong scale makes the error larger than 1.
TEST_P(GpuPacked, LogProbabilitiesOfPromptsAreNearTheCpus) {
  constexpr double kTolerance = 0.05;
  EXPECT_LE(mean_error(GetParam().name, outputs("cuda", 1), outputs("cpu", 1)), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, GpuPacked,
    ::testing::Values(
        Format{"Q8_0", GgufTarget::kQ8_0}, Format{"Q4_0", GgufTarget::kQ4_0},
        Format{"W4A16", W4A16Target{.group_size = 128}},
        Format{"Awq", IntegerFormat{.tool = IntegerTool::kAwq, .group_size = 64}},
        Format{"GptqActOrder",
               IntegerFormat{.tool = IntegerTool::kGptqV2, .group_size = 32, .act_order = true}},
        Format{"PackedBytesPerRow", IntegerFormat{.tool = IntegerTool::kCompressedPack,
                                                  .bits = 8,
                                                  .group_size = -1,
                                                  .symmetric = true,
                                                  .scales = "BF16"}}),
    [](const auto& test) { return std::string(test.param.name); });

// A small mixture of experts in blocks of GGUF or in integers.
struct MixtureFormat {
  const char* name;
  const char* model;  // one of random_models()
  std::variant<std::string_view, IntegerFormat> matrices;
  bool is_mixed = false;  // a matrix of one expert is not quantized, so its layer is expanded
};

class GpuPackedExperts : public GpuTest, public ::testing::WithParamInterface<MixtureFormat> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    for (const RandomModel& model : testing::random_models()) {
      if (model.name == GetParam().model) write(model);
    }
  }

  // Prompts of 1 to 160 tokens, so that steps have few tokens and many.
  std::vector<Collected> outputs(const char* device, bool eager) const {
    EngineConfig config;
    config.model = model_;
    config.device = device;
    config.enforce_eager = eager;
    config.kv_cache_memory = int64_t{64} << 20;
    const auto engine = make_engine(config);
    std::vector<Request> requests;
    for (int i = 0; i < 24; ++i) {
      requests.push_back(greedy(tiny_prompt(1 + (i * 37) % 160, static_cast<uint64_t>(i)), 12));
      requests.back().sampling.prompt_logprobs = 1;
    }
    return run_all(*engine, requests);
  }

 private:
  void write(const RandomModel& model) {
    if (const auto* matrices = std::get_if<std::string_view>(&GetParam().matrices)) {
      model_ = directory_.write("m.gguf", gguf_of(model, *matrices));
      return;
    }
    const std::vector<std::byte> weights = random_weights(parse(model));
    // With F32 activations a GPU would expand the integers; F16 is also the type of a GGUF file.
    std::string config = model.config;
    constexpr std::string_view kStored = "\"torch_dtype\": \"float32\"";
    config.replace(config.find(kStored), kStored.size(), "\"torch_dtype\": \"float16\"");
    const IntegerCheckpoint checkpoint =
        quantize_integers(config, weights, std::get<IntegerFormat>(GetParam().matrices));
    StoredTensors tensors = checkpoint.tensors;
    if (GetParam().is_mixed) {
      const std::string plain = "model.layers.1.mlp.experts.2.down_proj.";
      std::erase_if(tensors, [&](const auto& tensor) { return tensor.first.starts_with(plain); });
      tensors[plain + "weight"] = checkpoint.dequantized.at(plain + "weight");
    }
    const std::vector<std::byte> file = safetensors_file(tensors);
    directory_.write("config.json", checkpoint.config_json);
    directory_.write("model.safetensors",
                     std::string(reinterpret_cast<const char*>(file.data()), file.size()));
    model_ = directory_.path().string();
  }

  const ScratchDirectory directory_;
  std::string model_;
};

// Rounding may choose another expert where the logits of two are nearly equal.
TEST_P(GpuPackedExperts, LogProbabilitiesOfPromptsAreNearTheCpus) {
  constexpr double kTolerance = 0.02;
  const std::vector<Collected> expected = outputs("cpu", false);
  for (const bool eager : {false, true}) {
    EXPECT_LE(mean_error(GetParam().name, outputs("cuda", eager), expected), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, GpuPackedExperts,
    ::testing::Values(
        MixtureFormat{"MixtralQ4_K", "mixtral", "Q4_K"},
        MixtureFormat{"Qwen3Q4_K", "qwen3_moe", "Q4_K"},
        MixtureFormat{"Qwen3Q8_0", "qwen3_moe", "Q8_0"},
        MixtureFormat{"DeepseekV2Q4_0", "deepseek_v2", "Q4_0"},
        MixtureFormat{"Qwen3W4A16", "qwen3_moe",
                      IntegerFormat{.tool = IntegerTool::kCompressedPack,
                                    .bits = 4,
                                    .group_size = 32,
                                    .symmetric = true,
                                    .scales = "BF16"}},
        MixtureFormat{"Qwen3Awq", "qwen3_moe",
                      IntegerFormat{.tool = IntegerTool::kAwq, .group_size = 32}},
        MixtureFormat{"Qwen3AwqMixed", "qwen3_moe",
                      IntegerFormat{.tool = IntegerTool::kAwq, .group_size = 32}, true},
        MixtureFormat{
            "Qwen3GptqActOrder", "qwen3_moe",
            IntegerFormat{.tool = IntegerTool::kGptqV2, .group_size = 32, .act_order = true}},
        MixtureFormat{"DeepseekV2W4A16", "deepseek_v2",
                      IntegerFormat{.tool = IntegerTool::kCompressedPack,
                                    .bits = 4,
                                    .group_size = 32,
                                    .symmetric = true}}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire::testing
