// A GGUF file gives the same output through the whole engine as the checkpoint that it was made
// from, for every family in the checkpoint's own type; its metadata and wrong files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/file.h"
#include "engine/engine_case.h"
#include "start/gguf_files.h"
#include "start/packed_file.h"
#include "start/model_files.h"
#include "support/gguf_bytes.h"
#include "support/gguf_conversion.h"
#include "support/shared_data.h"
#include "support/source_models.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;
using testing::abacus_questions;
using testing::Collected;
using testing::convert_to_gguf;
using testing::cpu_config;
using testing::GgufSource;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::kAsStored;
using testing::outputs_of;
using testing::ScratchDirectory;
using testing::write_checkpoint;

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
  auto [config, weights] = testing::golden_model(GetParam().weights, GetParam().config);
  // GGUF files have no field for Gemma's scale of the scores: it is that of the head's size.
  constexpr std::string_view kScale = "\"query_pre_attn_scalar\": ";
  const size_t scale = config.find(kScale);
  if (scale != std::string::npos) config.replace(scale + kScale.size(), 1, "8");
  const ScratchDirectory scratch;
  const EngineConfig checkpoint = write_checkpoint(scratch, config, weights);
  GgufSource source = {config, testing::bytes_of(weights)};
  source.joins_latent = GetParam().joins_latent;
  source.fuses_gate_and_up = GetParam().fuses_gate_and_up;
  const std::string file =
      scratch.write("model.gguf", convert_to_gguf(source, GetParam().architecture, kAsStored));
  const std::vector<Request> requests = testing::logprob_requests({1, 7, 30}, 20);
  // Gemma's norms are rounded when llama.cpp adds 1; frequencies and their divisors are F32.
  testing::expect_close(outputs_of(cpu_config(file), requests), outputs_of(checkpoint, requests),
                        1e-3);
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
    const testing::SourceModel model = testing::abacus_model();
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
  EXPECT_THAT(open_packed_weights(config, files, {}).status().message(),
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

std::string error_of(const std::string& file) {
  const auto files = open_model_files(cpu_config(file));
  return files.ok() ? "" : files.status().message();
}

GgufWriter sized_llama() {
  return GgufWriter()
      .text("general.architecture", "llama")
      .number("llama.embedding_length", 4)
      .number("llama.feed_forward_length", 4)
      .number("llama.block_count", 1)
      .number("llama.attention.head_count", 1)
      .number("llama.context_length", 8)
      .floats("token_embd.weight", {2, 4}, std::vector<float>(8));
}

TEST(GgufFiles, WrongOnesAreNamed) {
  const ScratchDirectory scratch;
  const auto write = [&](const GgufWriter& writer) {
    return scratch.write("m.gguf", writer.file());
  };
  EXPECT_THAT(error_of(write(GgufWriter().number("general.architecture", 3))),
              HasSubstr("\"general.architecture\"; got nothing, expected one of llama, qwen2"));
  EXPECT_THAT(error_of(write(GgufWriter().text("general.architecture", "rwkv6"))),
              HasSubstr("got \"rwkv6\""));
  const auto llama = [] { return GgufWriter().text("general.architecture", "llama"); };
  EXPECT_THAT(error_of(write(llama())), HasSubstr("token_embd.weight"));
  const auto sized = sized_llama;
  EXPECT_EQ(error_of(write(sized())), "");
  EXPECT_THAT(error_of(write(llama().floats("token_embd.weight", {2, 4}, std::vector<float>(8)))),
              HasSubstr("m.gguf: metadata \"llama.embedding_length\"; got nothing, expected"));
  EXPECT_THAT(error_of(write(sized().number("llama.rope.dimension_count", 2))),
              HasSubstr("\"llama.rope.dimension_count\"; got 2, expected the head's, 4"));
  EXPECT_THAT(error_of(write(sized().text("llama.rope.scaling.type", "longrope"))),
              HasSubstr("expected none, linear or yarn"));
  EXPECT_THAT(error_of(write(sized().text("llama.rope.scaling.type", "yarn"))),
              HasSubstr("\"llama.rope.scaling.factor\"; got nothing, expected a factor"));
  EXPECT_THAT(error_of(write(sized().real("llama.rope.freq_base", NAN))),
              HasSubstr("\"llama.rope.freq_base\"; got an infinity, a NaN"));
  EXPECT_THAT(error_of(write(sized().text("llama.attention.key_length", "4"))),
              HasSubstr("\"llama.attention.key_length\"; got no integer"));
  // A factor without a type is linear, so it needs no frequencies beside it.
  for (const char* const key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const auto scaled = [&] { return sized().real(key, 8.0F); };
    EXPECT_EQ(error_of(write(scaled())), "");
    EXPECT_THAT(error_of(write(scaled().floats("rope_freqs.weight", {2}, {1, 1}))),
                HasSubstr("got \"linear\", expected none beside"));
  }
  EXPECT_THAT(error_of(write(sized().number("llama.attention.key_length", 3000000000U))),
              HasSubstr("got 3000000000, expected 1 to 2147483647"));
  EXPECT_THAT(error_of(write(sized().floats("rope_freqs.weight", {2}, {1, NAN}))),
              HasSubstr("tensor \"rope_freqs.weight\"; got nan, expected positive finite numbers"));
  for (const float divisor : {0.0F, -1.0F}) {
    EXPECT_THAT(error_of(write(sized().floats("rope_freqs.weight", {2}, {1, divisor}))),
                HasSubstr(fmt::format("got {}, expected positive finite numbers", divisor)));
  }
  EXPECT_THAT(error_of(write(sized().floats("rope_freqs.weight", {3}, {1, 1, 1}))),
              HasSubstr("one number per frequency, 2"));
  EXPECT_THAT(
      error_of(write(
          sized().text("tokenizer.ggml.model", "bert").texts("tokenizer.ggml.tokens", {"a"}))),
      HasSubstr("tokenizer.ggml.model; got \"bert\", expected gpt2 or llama"));
  EXPECT_THAT(error_of(write(
                  sized().text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.tokens", "a"))),
              HasSubstr("expected a list of texts"));
  EXPECT_THAT(error_of(write(sized().number("llama.attention.head_count_kv", 3))),
              HasSubstr("metadata \"llama.attention.head_count_kv\"; got 3, expected"));
  EXPECT_THAT(error_of(scratch.path()), HasSubstr("the name of one of the files, such as"));
  const std::string fifo = (scratch.path() / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_of(fifo), HasSubstr("fifo is not a regular file; got a FIFO"))
      << "and nothing waits for a writer";
}

// A value of another kind is not an absent one.
TEST(GgufFiles, WrongKindsOfATokenizersTextsAreNamed) {
  const auto error_with = [](const GgufWriter& writer) {
    const std::string file = writer.file();
    const auto gguf = GgufModel::from_memory(testing::bytes_of(file), "m.gguf").value();
    return gguf_tokenizer_config(gguf).status().message();
  };
  EXPECT_EQ(error_with(GgufWriter().text("tokenizer.chat_template", "{{ x }}")), "");
  EXPECT_THAT(
      error_with(GgufWriter().number("tokenizer.chat_template", 1)),
      HasSubstr("\"tokenizer.chat_template\"; got a value of another kind, expected a text"));
  EXPECT_THAT(error_with(GgufWriter().text("tokenizer.ggml.eos_token_id", "2")),
              HasSubstr("\"tokenizer.ggml.eos_token_id\"; got a value of another kind, expected an "
                        "integer"));
}

TEST(GgufFiles, GiveSamplingDefaults) {
  const ScratchDirectory scratch;
  const auto sampled = [] {
    return sized_llama()
        .real("general.sampling.temp", 0.25F)
        .number("general.sampling.top_k", 20)
        .real("general.sampling.penalty_repeat", 1.5F);
  };
  const std::string file = scratch.write("m.gguf", sampled().file());
  const auto generation_of = [&](const std::string& setting) {
    EngineConfig config = cpu_config(file);
    config.generation_config = setting;
    return open_model_files(config).value().generation;
  };
  GenerationConfig generation = generation_of("auto");
  EXPECT_EQ(generation.source, "general.sampling.*");
  EXPECT_EQ(generation.temperature, 0.25F);
  EXPECT_EQ(generation.top_k, 20);
  EXPECT_EQ(generation.repetition_penalty, 1.5F);
  EXPECT_EQ(generation.top_p, std::nullopt);
  generation = generation_of("vllm");
  EXPECT_EQ(generation.temperature, 1.0F);
  EXPECT_EQ(generation.top_k, std::nullopt);
  EXPECT_EQ(generation.repetition_penalty, std::nullopt);
  // A file beside it that only names ends adds them; one with sampling values replaces all.
  scratch.write("generation_config.json", R"({"eos_token_id": [1]})");
  generation = generation_of("auto");
  EXPECT_EQ(generation.source, "general.sampling.*");
  EXPECT_EQ(generation.eos_token_ids, std::vector<int>{1});
  scratch.write("generation_config.json", R"({"do_sample": false})");
  generation = generation_of("auto");
  EXPECT_EQ(generation.source, "generation_config.json");
  EXPECT_EQ(generation.do_sample, false);
  EXPECT_EQ(generation.temperature, std::nullopt);
}

TEST(GgufFiles, WrongSamplingDefaultsAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](const GgufWriter& writer) {
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_THAT(
      error_with(sized_llama().text("general.sampling.temp", "1")),
      HasSubstr("\"general.sampling.temp\"; got a value of another kind, expected a number"));
  EXPECT_THAT(error_with(sized_llama().real("general.sampling.min_p", NAN)),
              HasSubstr("\"general.sampling.min_p\"; got nan, expected a finite number"));
  EXPECT_THAT(error_with(sized_llama().real("general.sampling.temp", -1.0F)),
              HasSubstr("temperature; got \"-1\", expected a number from 0"));
  EngineConfig config = cpu_config(scratch.write("m.gguf", sized_llama().file()));
  config.generation_config = "folder";
  EXPECT_THAT(open_model_files(config).status().message(),
              HasSubstr("generation_config: must be auto or vllm, got folder"));
}

// The numbers of queries' and keys' biases are reordered, which takes a block apart.
TEST(GgufFiles, BiasesInBlocksAreRefused) {
  const ScratchDirectory scratch;
  const auto error_with = [&](std::string_view name) {
    GgufWriter writer = sized_llama();
    writer.tensor(name, {32}, 8, std::string(34, '\1'));  // one block of Q8_0
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  for (const std::string_view name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias"}) {
    EXPECT_THAT(error_with(name), HasSubstr(fmt::format("tensor \"{}\"; got a vector in blocks of "
                                                        "Q8_0, expected f32, f16 or bf16",
                                                        name)));
  }
  EXPECT_EQ(error_with("blk.0.attn_v.bias"), "");
}

// The listed values of metadata that change the arithmetic are refused.
TEST(GgufFiles, UnservedValuesAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](std::string_view key, float value) {
    return error_of(scratch.write("m.gguf", sized_llama().real(key, value).file()));
  };
  struct Case {
    std::string key;
    std::vector<float> served;
    float unserved;
  };
  const Case cases[] = {
      {"attention.causal", {1}, 0},
      {"attention.clamp_kqv", {0}, 8},
      {"attention.scale", {0}, 0.5F},
      {"attention.temperature_scale", {0}, 0.1F},
      {"logit_scale", {0, 1}, 0.5F},
      {"residual_scale", {0, 1}, 3},
      {"embedding_scale", {0, 1}, 12},
      {"final_logit_softcapping", {0}, 30},
      {"rope.scaling.attn_factor", {1}, 5},
      {"rope.scaling.yarn_attn_factor", {1}, NAN},
      {"rope.scaling.yarn_ext_factor", {1, -1}, 0},
      {"expert_group_scale", {0, 1}, 3},
      {"moe_every_n_layers", {0, 1}, 2},
      {"swiglu_clamp_exp", {0}, 7},
      {"swiglu_clamp_shexp", {0}, 7},
      {"attention.max_alibi_bias", {0}, 8},
      {"router_logit_softcapping", {0}, 30},
  };
  for (const Case& one : cases) {
    const std::string key = "llama." + one.key;
    for (const float value : one.served) EXPECT_EQ(error_with(key, value), "");
    EXPECT_THAT(error_with(key, one.unserved),
                AllOf(HasSubstr(fmt::format("\"{}\"; got {:g}, expected ", key, one.unserved)),
                      HasSubstr("other values are not served")));
  }
  const auto window_error = [&](uint32_t window) {
    const auto writer = sized_llama().number("llama.attention.sliding_window", window);
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_EQ(window_error(0), "");
  EXPECT_EQ(window_error(8), "");  // the context
  EXPECT_THAT(window_error(7), HasSubstr("\"llama.attention.sliding_window\"; got 7, expected 0"));
}

}  // namespace
}  // namespace quire
