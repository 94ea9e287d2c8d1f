// FP8 checkpoints on a GPU: the embedded model, quantized with scales per tensor, per row and per
// block. A CPU multiplies the values by their scales and does not round activations, so its outputs
// are the reference. On the GPU, steps of more than 8 token rows may round activations to FP8.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "cuda/base/device_info.h"
#include "cuda/platform/gpu_engine.h"
#include "support/fp8_checkpoint.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "support/source_models.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;

struct Format {
  const char* name;
  Fp8Tool tool;
};

class GpuFp8 : public GpuTest, public ::testing::WithParamInterface<Format> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (cuda::open_device(0)->device.compute_capability != 90) {
      GTEST_SKIP() << "products with FP8 weights need compute capability 9.0";
    }
    write_checkpoint();
  }

  std::vector<Collected> outputs(const char* device, int prompt_logprobs) const {
    EngineConfig config = testing::embedded(device);
    config.model = directory_.path();
    return answers_to_questions(config, prompt_logprobs);
  }

 private:
  void write_checkpoint() const {
    const fs::path source = abacus_path();
    const SourceModel embedded = abacus_model();
    const Fp8Checkpoint checkpoint =
        quantize_checkpoint(embedded.config, embedded.bytes(), GetParam().tool);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
      directory_.copy(source / name, name);
    }
    directory_.write("config.json", checkpoint.config_json);
    directory_.write("model.safetensors", safetensors_file(checkpoint.tensors));
  }

  const ScratchDirectory directory_;
};

// Rounding may change the answers of which the model is least certain.
TEST_P(GpuFp8, MostAnswersAreTheCpus) {
  const std::vector<Collected> expected = outputs("cpu", 0);
  const std::vector<Collected> got = outputs("cuda", 0);
  EXPECT_LE(count_differences(got, expected), kNumQuestions / 4);
}

// The mean error of the prompts' log probabilities; a wrong scale makes it larger than 1.
TEST_P(GpuFp8, LogProbabilitiesOfPromptsAreNearTheCpus) {
  constexpr double kTolerance = 0.25;
  const std::vector<Collected> expected = outputs("cpu", 1);
  const std::vector<Collected> got = outputs("cuda", 1);
  ASSERT_EQ(got.size(), expected.size());
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].prompt_logprobs.size(), expected[i].prompt_logprobs.size());
    for (size_t j = 0; j < got[i].prompt_logprobs.size(); ++j) {
      if (expected[i].prompt_logprobs[j].empty()) continue;
      ASSERT_FALSE(got[i].prompt_logprobs[j].empty());
      // The first entry belongs to the prompt's token.
      sum += std::abs(got[i].prompt_logprobs[j].front().logprob -
                      expected[i].prompt_logprobs[j].front().logprob);
      ++count;
    }
  }
  ASSERT_GT(count, 0);
  EXPECT_LE(sum / count, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Formats, GpuFp8,
                         ::testing::Values(Format{"PerTensor", Fp8Tool::kHuggingFaceTensor},
                                           Format{"PerRow", Fp8Tool::kCompressedChannel},
                                           Format{"PerBlock", Fp8Tool::kHuggingFaceBlock}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire::testing
