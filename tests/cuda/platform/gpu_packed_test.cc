// The embedded model with weights in 4 to 8 bits, which stay packed on a GPU. A CPU computes with
// the same integers, and with activations that are about as exact as F32, so its outputs are the
// reference.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <variant>

#include "base/file.h"
#include "cuda/platform/gpu_engine.h"
#include "quantize/quantize.h"
#include "support/integer_checkpoint.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::Collected;
using testing::IntegerFormat;
using testing::IntegerTool;

struct Format {
  const char* name;
  std::variant<GgufTarget, W4A16Target, IntegerFormat> target;
};

class GpuPacked : public testing::GpuTest, public ::testing::WithParamInterface<Format> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const auto* format = std::get_if<IntegerFormat>(&GetParam().target)) {
      model_ = write_integers(*format);
    } else if (const auto* gguf = std::get_if<GgufTarget>(&GetParam().target)) {
      model_ = write_copy(
          {.model = "", .out = directory_.path() / "copy.gguf", .target = *gguf});
    } else {
      model_ = write_copy({.model = "",
                           .out = directory_.path() / "copy",
                           .target = std::get<W4A16Target>(GetParam().target)});
    }
  }

  std::vector<Collected> outputs(const char* device, int prompt_logprobs) const {
    EngineConfig config = testing::embedded(device);
    config.model = model_;
    const auto engine = testing::make_engine(config);
    if (engine == nullptr) return {};
    std::vector<Request> requests = testing::questions(*engine);
    for (Request& request : requests) request.sampling.prompt_logprobs = prompt_logprobs;
    return testing::run_all(*engine, requests);
  }

 private:
  static std::string write_copy(const QuantizeOptions& options) {
    const Result<QuantizeResult> result = quantize(options);
    EXPECT_EQ(result.status().message(), "");
    return options.out.string();
  }
  std::string write_integers(const IntegerFormat& format) const {
    const fs::path source = testing::source_path("models/quire-abacus");
    const std::string config = read_file((source / "config.json").string(), 1 << 20).value();
    const std::string weights =
        read_file((source / "model.safetensors").string(), size_t{64} << 20).value();
    const testing::IntegerCheckpoint checkpoint =
        testing::quantize_integers(config, std::as_bytes(std::span(weights)), format);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
      directory_.copy(source / name, name);
    }
    directory_.write("config.json", checkpoint.config_json);
    directory_.write("model.safetensors", testing::safetensors_file(checkpoint.tensors));
    return directory_.path().string();
  }

  const testing::ScratchDirectory directory_;
  std::string model_;
};

// Rounding may change the answers of which the model is least certain.
TEST_P(GpuPacked, MostAnswersAreTheCpus) {
  const std::vector<Collected> expected = outputs("cpu", 0);
  const std::vector<Collected> got = outputs("cuda", 0);
  const int num_different = testing::count_differences(got, expected);
  std::printf("%s: %d answers differ from the CPU's\n", GetParam().name, num_different);
  EXPECT_LE(num_different, testing::kNumQuestions / 10);
}

// The mean error of the prompts' log probabilities; a wrong scale makes it larger than 1.
TEST_P(GpuPacked, LogProbabilitiesOfPromptsAreNearTheCpus) {
  constexpr double kTolerance = 0.05;
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
      // The first entry is that of the prompt's token.
      sum += std::abs(got[i].prompt_logprobs[j].front().logprob -
                      expected[i].prompt_logprobs[j].front().logprob);
      ++count;
    }
  }
  ASSERT_GT(count, 0);
  std::printf("%s: the mean error of log probabilities is %.4f\n", GetParam().name, sum / count);
  EXPECT_LE(sum / count, kTolerance);
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

}  // namespace
}  // namespace quire
