// A GGUF file gives the same output through the whole engine as the checkpoint that it was made
// from, for every family in the checkpoint's own type.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/file.h"
#include "engine/engine_case.h"
#include "start/model_files.h"
#include "start/packed_file.h"
#include "support/gguf_bytes.h"
#include "support/gguf_conversion.h"
#include "support/shared_data.h"
#include "support/source_models.h"
#include "tensor/gguf.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;
using ::testing::HasSubstr;

struct Family {
  const char* weights;  // in tests/golden/models
  const char* config;
  const char* architecture;  // llama.cpp's name
  // The layouts of older files and of an option (GgufSource).
  bool joins_latent = false;
  bool fuses_gate_and_up = false;
};

class GgufFamilies : public ::testing::TestWithParam<Family> {};

TEST_P(GgufFamilies, EqualTheirCheckpoints) {
  auto [config, weights] = golden_model(GetParam().weights, GetParam().config);
  // GGUF files have no field for Gemma's scale of the scores: it follows from the head's size.
  constexpr std::string_view kScale = "\"query_pre_attn_scalar\": ";
  const size_t scale = config.find(kScale);
  if (scale != std::string::npos) config.replace(scale + kScale.size(), 1, "8");
  const ScratchDirectory scratch;
  const EngineConfig checkpoint = write_checkpoint(scratch, config, weights);
  GgufSource source = {config, bytes_of(weights)};
  source.joins_latent = GetParam().joins_latent;
  source.fuses_gate_and_up = GetParam().fuses_gate_and_up;
  const std::string file =
      scratch.write("model.gguf", convert_to_gguf(source, GetParam().architecture, kAsStored));
  const std::vector<Request> requests = logprob_requests({1, 7, 30}, 20);
  // Gemma's norms are rounded when llama.cpp adds 1; frequencies and their divisors are F32.
  expect_close(outputs_of(cpu_config(file), requests), outputs_of(checkpoint, requests), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    All, GgufFamilies,
    ::testing::Values(
        Family{"llama", "default", "llama"}, Family{"llama", "linear", "llama"},
        Family{"llama", "yarn", "llama"}, Family{"llama", "llama3", "llama"},
        Family{"llama_bf16", "default", "llama"}, Family{"llama_f16", "default", "llama"},
        Family{"llama_tied_biased", "default", "llama"}, Family{"qwen2", "default", "qwen2"},
        Family{"qwen3", "default", "qwen3"}, Family{"gemma2", "default", "gemma2"},
        Family{"gemma3", "default", "gemma3"}, Family{"mixtral", "default", "llama"},
        Family{"mixtral", "default", "llama", false, true},
        Family{"qwen3_moe", "default", "qwen3moe"}, Family{"deepseek_v2", "default", "deepseek2"},
        Family{"deepseek_v2", "default", "deepseek2", true},
        Family{"deepseek_v2", "scaled", "deepseek2"}, Family{"deepseek_v2", "yarn", "deepseek2"},
        Family{"deepseek_v2_q_lora", "default", "deepseek2"},
        Family{"deepseek_v2_q_lora", "default", "deepseek2", true, true},
        Family{"deepseek_v3", "default", "deepseek2"},
        Family{"deepseek_v3", "yarn", "deepseek2", true}),
    [](const auto& family) {
      return fmt::format("{}_{}{}{}", family.param.weights, family.param.config,
                         family.param.joins_latent ? "_joined" : "",
                         family.param.fuses_gate_and_up ? "_fused" : "");
    });

constexpr const char* kMapped = "packed weights are mapped from";

// The embedded model as a GGUF file.
class GgufEmbedded : public ::testing::Test {
 protected:
  // The path of the file, which has the type's name unless another is given.
  std::string convert(std::string_view matrices, std::string name = {}) const {
    const SourceModel model = abacus_model();
    if (name.empty()) name = matrices == kAsStored ? "stored" : matrices;
    return scratch_.write(name + ".gguf",
                          convert_to_gguf({model.config, model.bytes(),
                                           embedded_model().tokenizer_json, "{{ bos_token }}x"},
                                          "llama", matrices));
  }

  ScratchDirectory scratch_;
};

TEST_F(GgufEmbedded, TextIsTheSameInPlainTypes) {
  const std::vector<Collected> expected = outputs_of(cpu_config(""), abacus_questions());
  for (const std::string_view matrices : {kAsStored, "F16"sv, "F32"sv}) {
    SCOPED_TRACE(matrices);
    const std::vector<Collected> got =
        outputs_of(cpu_config(convert(matrices)), abacus_questions());
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_FALSE(expected[i].text.empty());
      EXPECT_EQ(got[i].text, expected[i].text);
      EXPECT_EQ(got[i].token_ids, expected[i].token_ids);
    }
  }
}

// The second start maps what the first one packed.
TEST_F(GgufEmbedded, KeptPackedWeightsGiveTheSameBits) {
  const std::string kept = scratch_.path() / "kept";
  const auto expect_same = [](const EngineConfig& config, const std::string& in_log) {
    EngineConfig without = config;
    without.packed_weights = "off";
    const std::vector<Collected> expected = outputs_of(without, abacus_questions());
    ::testing::internal::CaptureStderr();
    const std::vector<Collected> got = outputs_of(config, abacus_questions());
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr(in_log));
    EXPECT_EQ(log.find("writing") == std::string::npos, in_log == kMapped) << log;
    testing::expect_same(got, expected);
  };
  for (const std::string_view matrices : {kAsStored, "F16"sv, "Q8_0"sv, "Q4_0"sv}) {
    SCOPED_TRACE(matrices);
    EngineConfig config = cpu_config(convert(matrices));
    config.packed_weights = kept;
    expect_same(config, "MiB of packed weights to");
    expect_same(config, kMapped);
  }
  // Another model in the place of the first.
  EngineConfig config = cpu_config(convert("Q4_0", "Q8_0"));
  config.packed_weights = kept;
  expect_same(config, "have changed");
  expect_same(config, kMapped);
  EXPECT_EQ(std::distance(fs::directory_iterator(kept), fs::directory_iterator()), 4);
}

TEST_F(GgufEmbedded, PackedWeightsOfSmallModelsAreKeptOnlyInANamedDirectory) {
  EngineConfig config = cpu_config(convert("Q4_0"));
  const ModelFiles files = open_model_files(config).value();
  EXPECT_EQ(open_packed_weights(config, files, {}).value(), nullptr);
  config.packed_weights = scratch_.path() / "kept";
  EXPECT_NE(open_packed_weights(config, files, {}).value(), nullptr);
  config.packed_weights = "off";
  EXPECT_EQ(open_packed_weights(config, files, {}).value(), nullptr);
  config.packed_weights = "";
  EXPECT_THAT(open_model_files(config).status().message(),
              HasSubstr("packed_weights: must be auto, off or a directory"));
  config.packed_weights = scratch_.path() / "kept";
  const ModelFiles embedded = open_model_files(cpu_config("")).value();
  EXPECT_EQ(open_packed_weights(config, embedded, {}).value(), nullptr);
}

// Its blocks and norms are served as BF16, the type of config.json.
TEST(EmbeddedModel, LosesNothingInBf16) {
  const auto gguf = GgufModel::from_memory(embedded_model().weights, "embedded").value();
  int64_t num_blocks = 0;
  for (const GgufTensor* tensor : gguf.tensors()) {
    const GgufBlockType& type = *tensor->type;
    std::vector<float> block(static_cast<size_t>(type.block_elements));
    for (size_t at = 0; at < tensor->bytes.size(); at += static_cast<size_t>(type.block_bytes)) {
      dequantize(type, tensor->bytes.data() + at, block.data());
      for (const float x : block) ASSERT_EQ(bf16_to_f32(f32_to_bf16(x)), x) << tensor->name;
      num_blocks += type.plain ? 0 : 1;
    }
  }
  EXPECT_EQ(num_blocks, 15728640 / 32);
  const ModelFiles files = open_model_files(cpu_config("")).value();
  for (const std::string& name : files.weights->names()) {
    EXPECT_EQ(files.weights->dtype_of(name), DType::kBF16) << name;
    EXPECT_EQ(files.weights->block_type(name), nullptr) << name;
  }
}

TEST_F(GgufEmbedded, QuantizationAtLoadNeedsAFileWithoutBlocks) {
  EngineConfig config = cpu_config(convert("F16"));
  config.quantization = "fp8";
  EXPECT_TRUE(open_model_files(config).ok());
  config.model = convert("Q8_0");
  EXPECT_THAT(open_model_files(config).status().message(), HasSubstr("already quantized"));
}

TEST_F(GgufEmbedded, MetadataGivesNameTokenizerAndTemplate) {
  const EmbeddedModel& model = embedded_model();
  const ModelFiles files = open_model_files(cpu_config(convert("Q8_0", "abacus"))).value();
  EXPECT_EQ(files.name, "abacus");
  EXPECT_EQ(files.config.dtype, DType::kF16);
  EXPECT_EQ(files.config.bos_token_id, 1);
  EXPECT_EQ(files.config.eos_token_ids, std::vector<int>{2});
  ASSERT_TRUE(files.chat.has_value());
  EXPECT_EQ(files.chat->render(std::vector<ChatMessage>()).value().text, "<|begin|>x");
  const auto tokenizer = Tokenizer::from_json(model.tokenizer_json, "embedded").value();
  const std::string text =
      "<|user|>Tom's 1,234 apples — naïve  café\n\n\t日本 🍎 x<|end|> behind it's 3.5%";
  const auto ids = files.tokenizer->encode(text, true).value();
  EXPECT_EQ(ids, tokenizer->encode(text, true).value());
  EXPECT_EQ(files.tokenizer->decode(ids, false), tokenizer->decode(ids, false));
}

}  // namespace
}  // namespace quire::testing
