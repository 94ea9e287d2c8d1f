// `quire quantize` from a checkpoint to the output of an engine that opens the result: every target
// of the embedded model and every family, interrupted runs, and what is refused.
#include "quantize/quantize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/numbers.h"
#include "engine/engine_case.h"
#include "quantize/interrupt.h"
#include "quantize/source.h"
#include "start/model_files.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "tensor/checkpoint.h"
#include "tensor/dtype.h"
#include "tensor/gguf.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kMaxBytes = size_t{256} << 20;

QuantizeOptions options_for(const std::string& model, const fs::path& out,
                            std::variant<GgufTarget, W4A16Target> target) {
  QuantizeOptions options;
  options.model = model;
  options.out = out;
  options.target = target;
  options.num_threads = 2;
  return options;
}

std::string error_of(const QuantizeOptions& options) {
  const auto result = quantize(options);
  return result.ok() ? "" : result.status().message();
}

// The mean and the largest difference of the log probabilities of the prompts' tokens.
struct Difference {
  double mean = 0;
  double largest = 0;
};

Difference difference(const std::vector<Collected>& got, const std::vector<Collected>& expected) {
  Difference result;
  int count = 0;
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_EQ(got[i].prompt_logprobs.size(), expected[i].prompt_logprobs.size());
    for (size_t t = 1; t < expected[i].prompt_logprobs.size(); ++t) {
      const double one = std::abs(double{got[i].prompt_logprobs[t][0].logprob} -
                                  double{expected[i].prompt_logprobs[t][0].logprob});
      result.mean += one;
      result.largest = std::max(result.largest, one);
      ++count;
    }
  }
  EXPECT_GT(count, 0);
  result.mean /= std::max(count, 1);
  return result;
}

struct EmbeddedCase {
  const char* name;
  GgufTarget target;
  double most_bits;     // per weight
  double mean_logprob;  // bounds of the differences of log probabilities
  double worst_logprob;
};

class QuantizeEmbedded : public ::testing::TestWithParam<EmbeddedCase> {};

TEST_P(QuantizeEmbedded, GivesNearlyTheSameModel) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "abacus.gguf";
  const auto result = value_of(quantize(options_for("", out, GetParam().target)));
  EXPECT_EQ(fs::file_size(out), static_cast<uint64_t>(result.output_bytes));
  EXPECT_LT(8.0 * static_cast<double>(result.output_bytes),
            GetParam().most_bits * static_cast<double>(result.num_weights));
  const Difference got = difference(outputs_of(cpu_config(out), abacus_questions()),
                                    outputs_of(cpu_config(""), abacus_questions()));
  EXPECT_LE(got.mean, GetParam().mean_logprob);
  EXPECT_LE(got.largest, GetParam().worst_logprob);
}

INSTANTIATE_TEST_SUITE_P(
    All, QuantizeEmbedded,
    ::testing::Values(EmbeddedCase{"bf16", GgufTarget::kBf16, 16.3, 1e-4, 1e-3},
                      EmbeddedCase{"f16", GgufTarget::kF16, 16.3, 1e-3, 1e-2},
                      EmbeddedCase{"q8_0", GgufTarget::kQ8_0, 8.8, 0.03, 0.3},
                      EmbeddedCase{"q4_k_m", GgufTarget::kQ4KM, 6.2, 0.15, 1.5},
                      EmbeddedCase{"q4_0", GgufTarget::kQ4_0, 5.3, 0.3, 3}),
    [](const auto& one) { return one.param.name; });

TEST(Quantize, KeepsConfigurationTokenizerAndTemplate) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "abacus.gguf";
  ASSERT_EQ(error_of(options_for("", out, GgufTarget::kQ8_0)), "");
  EngineConfig config;
  const ModelFiles source = open_model_files(config).value();
  config.model = out.string();
  const ModelFiles written = open_model_files(config).value();
  EXPECT_EQ(written.config.vocab_size, source.config.vocab_size);
  EXPECT_EQ(written.config.longest_model_len, source.config.longest_model_len);
  EXPECT_EQ(written.config.bos_token_id, source.config.bos_token_id);
  EXPECT_EQ(written.config.eos_token_ids, source.config.eos_token_ids);
  ASSERT_TRUE(source.chat && written.chat);
  EXPECT_EQ(written.chat->source(), source.chat->source());
  const std::string text = "<|user|>Tom's 1,234 apples — naïve \n\n\t日本 🍎 x<|end|> it's 3.5%";
  EXPECT_EQ(written.tokenizer->encode(text, true).value(),
            source.tokenizer->encode(text, true).value());
}

// The checkpoints of all families, in F32 with random weights.
struct FamilyCase {
  const char* weights;  // in tests/golden/models
  const char* config;
};

class QuantizeFamilies : public ::testing::TestWithParam<FamilyCase> {};

std::string family_checkpoint(const FamilyCase& family, const ScratchDirectory& scratch) {
  const fs::path golden = source_path("tests/golden/models") / family.weights;
  std::string config =
      read_file(golden / fmt::format("{}.config.json", family.config), 1 << 20).value();
  // llama.cpp takes Gemma's scale of the scores from the size of the heads.
  constexpr std::string_view kScale = "\"query_pre_attn_scalar\": ";
  const size_t scale = config.find(kScale);
  if (scale != std::string::npos) config.replace(scale + kScale.size(), 1, "8");
  scratch.write("config.json", config);
  scratch.copy(golden / "model.safetensors", "model.safetensors");
  return scratch.path().string();
}

TEST_P(QuantizeFamilies, EqualTheirCheckpoints) {
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint(GetParam(), scratch);
  const fs::path out = scratch.path() / "model.gguf";
  ASSERT_EQ(error_of(options_for(model, out, GgufTarget::kF16)), "");
  const std::vector<Request> requests = logprob_requests({2, 7, 30}, 5);
  // The attention of these weights is peaked, so that the rounding to F16 shows.
  const Difference got =
      difference(outputs_of(cpu_config(out), requests), outputs_of(cpu_config(model), requests));
  EXPECT_LT(got.largest, 0.06);
  EXPECT_LT(got.mean, 0.015);
}

INSTANTIATE_TEST_SUITE_P(
    All, QuantizeFamilies,
    ::testing::Values(FamilyCase{"llama", "default"}, FamilyCase{"llama", "linear"},
                      FamilyCase{"llama", "yarn"}, FamilyCase{"llama", "llama3"},
                      FamilyCase{"llama_bf16", "default"}, FamilyCase{"llama_f16", "default"},
                      FamilyCase{"llama_tied_biased", "default"}, FamilyCase{"qwen2", "default"},
                      FamilyCase{"qwen3", "default"}, FamilyCase{"gemma2", "default"},
                      FamilyCase{"gemma3", "default"}),
    [](const auto& family) {
      return fmt::format("{}_{}", family.param.weights, family.param.config);
    });

TEST(QuantizeResume, GivesTheSameBytes) {
  const ScratchDirectory scratch;
  const fs::path whole = scratch.path() / "whole.gguf";
  ASSERT_EQ(error_of(options_for("", whole, GgufTarget::kQ4KM)), "");
  const std::string expected = read_file(whole, kMaxBytes).value();
  const fs::path out = scratch.path() / "out.gguf";
  const QuantizeOptions options = options_for("", out, GgufTarget::kQ4KM);
  for (const size_t tensor : {size_t{0}, size_t{1}, size_t{20}, size_t{60}}) {
    const auto interrupted = quantize(options, interrupt_at(tensor));
    EXPECT_EQ(interrupted.status().code(), StatusCode::kCancelled);
    EXPECT_THAT(interrupted.status().message(),
                HasSubstr(fmt::format("interrupted after {} of", tensor)));
    EXPECT_FALSE(fs::exists(out));
  }
  QuantizeOptions other_threads = options;
  other_threads.num_threads = 1;
  const auto result = value_of(quantize(other_threads));
  EXPECT_GE(result.num_continued, 59U);
  EXPECT_EQ(read_file(out, kMaxBytes).value(), expected);
}

// A process may be killed after any byte.
TEST(QuantizeResume, ContinuesAfterAnyByte) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "out.gguf";
  const QuantizeOptions options = options_for("", out, GgufTarget::kQ8_0);
  ASSERT_EQ(quantize(options, interrupt_at(1)).status().code(), StatusCode::kCancelled);
  const std::string state = read_file(out.string() + ".part.state", 4096).value();
  ASSERT_EQ(error_of(options), "");
  const std::string expected = read_file(out, kMaxBytes).value();
  for (const size_t size : {size_t{1}, size_t{5000}, size_t{150000}, expected.size() / 3,
                            expected.size() - 1, expected.size(), expected.size() + 10}) {
    std::string part = expected;
    part.resize(size, 'x');
    // Bytes that the disk did not get.
    std::fill(part.end() - static_cast<int64_t>(std::min<size_t>(size, 20)), part.end(), '?');
    fs::remove(out);
    scratch.write("out.gguf.part", part);
    scratch.write("out.gguf.part.state", state);
    ASSERT_EQ(error_of(options), "") << size;
    EXPECT_TRUE(read_file(out, kMaxBytes).value() == expected) << size;
  }
}

TEST(QuantizeResume, OtherOptionsBeginAnew) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "out.gguf";
  ASSERT_FALSE(quantize(options_for("", out, GgufTarget::kQ4_0), interrupt_at(30)).ok());
  const auto result = value_of(quantize(options_for("", out, GgufTarget::kQ8_0)));
  EXPECT_EQ(result.num_continued, 0U);
  const fs::path whole = scratch.path() / "whole.gguf";
  ASSERT_EQ(error_of(options_for("", whole, GgufTarget::kQ8_0)), "");
  EXPECT_TRUE(read_file(out, kMaxBytes).value() == read_file(whole, kMaxBytes).value());
}

// Tools that copy a checkpoint keep its files' sizes and times.
TEST(QuantizeResume, AnotherCheckpointBeginsAnew) {
  const ScratchDirectory first;
  const ScratchDirectory second;
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint({"llama", "default"}, first);
  const std::string other = family_checkpoint({"llama", "default"}, second);
  std::string weights = read_file(first.path() / "model.safetensors", kMaxBytes).value();
  std::fill(weights.end() - 4000, weights.end(), '\0');
  second.write("model.safetensors", weights);
  fs::last_write_time(second.path() / "model.safetensors",
                      fs::last_write_time(first.path() / "model.safetensors"));
  const fs::path out = scratch.path() / "out.gguf";
  ASSERT_FALSE(quantize(options_for(model, out, GgufTarget::kF16), interrupt_at(10)).ok());
  const auto result = value_of(quantize(options_for(other, out, GgufTarget::kF16)));
  EXPECT_EQ(result.num_continued, 0U);
}

// Decodes w4a16 as compressed-tensors does, and compares with the source.
TEST(QuantizeW4A16, PacksTheNearestIntegers) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "w4a16";
  ASSERT_EQ(error_of(options_for("", out, W4A16Target{64})), "");
  const auto written = Checkpoint::open(out).value();
  const auto source = Checkpoint::open(abacus_path()).value();
  const std::string name = "model.layers.3.mlp.down_proj.";
  const TensorView packed = written->tensor(name + "weight_packed", {384, 1024 / 8}).value();
  const TensorView scales = written->tensor(name + "weight_scale", {384, 1024 / 64}).value();
  const std::vector<int64_t> shape = written->integers(name + "weight_shape", 2).value();
  const TensorView expected = source->tensor(name + "weight", {384, 1024}).value();
  EXPECT_EQ(scales.dtype, DType::kBF16);
  EXPECT_EQ(shape, (std::vector<int64_t>{384, 1024}));
  for (int64_t i = 0; i < 384 * 1024; ++i) {
    const auto word = static_cast<uint32_t>(packed.as<int32_t>()[i / 8]);
    const int integer = static_cast<int>((word >> (4 * (i % 8))) & 15) - 8;
    const float scale = element_as_f32(scales, i / 64);
    const float x = element_as_f32(expected, i);
    // The largest magnitude of a group is 7.5 steps, and the scale is rounded to BF16.
    ASSERT_NEAR(static_cast<float>(integer) * scale, x, 0.535F * scale) << i;
  }
  const std::string norm = "model.layers.3.input_layernorm.weight";
  EXPECT_EQ(std::memcmp(written->tensor(norm, {384}).value().data,
                        source->tensor(norm, {384}).value().data, 384 * 2),
            0);
  const std::string config = read_file(out / "config.json", 1 << 20).value();
  EXPECT_THAT(config, AllOf(HasSubstr("\"pack-quantized\""), HasSubstr("\"group_size\": 64"),
                            HasSubstr("\"hidden_size\": 384")));
  EXPECT_TRUE(fs::exists(out / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(out.string() + ".part"));
}

TEST(QuantizeW4A16, ContinuesAndReplaces) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "w4a16";
  QuantizeOptions options = options_for("", out, W4A16Target{});
  ASSERT_EQ(error_of(options), "");
  const std::string expected = read_file(out / "model.safetensors", kMaxBytes).value();
  EXPECT_THAT(error_of(options), HasSubstr("w4a16 exists; expected a new path, or --force"));
  options.force = true;
  EXPECT_FALSE(quantize(options, interrupt_at(100)).ok());
  EXPECT_TRUE(fs::exists(out / "model.safetensors"));
  fs::create_directory(out.string() + ".replaced");  // of an earlier version
  const auto result = value_of(quantize(options));
  EXPECT_GE(result.num_continued, 99U);
  EXPECT_TRUE(read_file(out / "model.safetensors", kMaxBytes).value() == expected);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 2);
  scratch.write("w4a16/notes.txt", "x");
  fs::create_directory(out / "folder");
  EXPECT_THAT(error_of(options), HasSubstr("is not of a w4a16 checkpoint"));
}

// Numbers whose scale is less than the smallest one that BF16 has.
TEST(QuantizeW4A16, KeepsTheSmallestNumbers) {
  const ScratchDirectory source;
  const ScratchDirectory scratch;
  const fs::path abacus = abacus_path();
  source.copy(abacus / "config.json", "config.json");
  std::string weights = read_file(abacus / "model.safetensors", kMaxBytes).value();
  const std::string name = "model.layers.3.mlp.down_proj.";
  const auto original = Checkpoint::from_memory(std::as_bytes(std::span(weights)), "test").value();
  const TensorView matrix = original->tensor(name + "weight", {384, 1024}).value();
  const auto begin = matrix.as<char>() - weights.data();
  const std::vector<uint16_t> tiny(128, 1);  // 2^-133
  std::memcpy(weights.data() + begin, tiny.data(), tiny.size() * sizeof(uint16_t));
  source.write("model.safetensors", weights);
  const fs::path out = scratch.path() / "w4a16";
  ASSERT_EQ(error_of(options_for(source.path().string(), out, W4A16Target{})), "");
  const auto written = Checkpoint::open(out).value();
  const TensorView packed = written->tensor(name + "weight_packed", {384, 1024 / 8}).value();
  const TensorView scales = written->tensor(name + "weight_scale", {384, 1024 / 128}).value();
  EXPECT_EQ(element_as_f32(scales, 0), 0x1p-133F);
  EXPECT_EQ(static_cast<uint32_t>(packed.as<int32_t>()[0]), 0x99999999U);  // 1 + 8 each
}

TEST(QuantizeW4A16, ASecondRunChangesNothingOfTheFirst) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "w4a16";
  std::string second;
  QuantizeHooks hooks;
  hooks.on_progress = [&](const QuantizeProgress& progress) {
    if (progress.tensor == 10) second = error_of(options_for("", out, W4A16Target{32}));
  };
  ASSERT_TRUE(quantize(options_for("", out, W4A16Target{64}), hooks).ok());
  EXPECT_THAT(second, HasSubstr("w4a16.part is being written by another process"));
  EXPECT_THAT(read_file(out / "config.json", 1 << 20).value(), HasSubstr("\"group_size\": 64"));
}

TEST(QuantizeW4A16, TakesOverNoFilesOfTheFolder) {
  const ScratchDirectory scratch;
  const fs::path out = scratch.path() / "w4a16";
  const QuantizeOptions options = options_for("", out, W4A16Target{});
  ASSERT_FALSE(quantize(options, interrupt_at(10)).ok());
  scratch.write("w4a16.part/notes.txt", "x");
  EXPECT_THAT(error_of(options),
              AllOf(HasSubstr("w4a16.part has \"notes.txt\""), HasSubstr("rename or remove it")));
  fs::remove(out.string() + ".part/notes.txt");
  scratch.write("w4a16.part/added_tokens.json", "stale");
  ASSERT_EQ(error_of(options), "");
  EXPECT_FALSE(fs::exists(out / "added_tokens.json"));
  fs::create_directory(out.string() + ".part");
  scratch.write("w4a16.part/config.json", "of the user");
  QuantizeOptions again = options;
  again.force = true;
  EXPECT_THAT(error_of(again), HasSubstr("w4a16.part lacks model.safetensors.part"));
  EXPECT_TRUE(fs::exists(out.string() + ".part/config.json"));
}

TEST(QuantizeW4A16, TheOutputMayEndWithASeparator) {
  const ScratchDirectory scratch;
  QuantizeOptions options = options_for("", scratch.path() / "w4a16//", W4A16Target{});
  const auto result = value_of(quantize(options));
  EXPECT_EQ(result.out, scratch.path() / "w4a16");
  EXPECT_TRUE(fs::exists(scratch.path() / "w4a16/model.safetensors"));
  options.force = true;
  EXPECT_EQ(error_of(options), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()), 1);
  for (const char* out : {"", ".", "..", "/", "w4a16/..", "./"}) {
    options.out = out;
    EXPECT_THAT(error_of(options), HasSubstr("expected a path that ends with the name")) << out;
  }
}

TEST(QuantizeW4A16, WritesItsSchemeOnce) {
  const ScratchDirectory source;
  const ScratchDirectory scratch;
  const fs::path abacus = abacus_path();
  source.copy(abacus / "model.safetensors", "model.safetensors");
  std::string config = read_file(abacus / "config.json", 1 << 20).value();
  config.insert(config.find('{') + 1, "\"quantization_config\": null,");
  source.write("config.json", config);
  const fs::path out = scratch.path() / "w4a16";
  ASSERT_EQ(error_of(options_for(source.path().string(), out, W4A16Target{})), "");
  const std::string written = read_file(out / "config.json", 1 << 20).value();
  const size_t field = written.find("quantization_config");
  EXPECT_NE(field, written.npos);
  EXPECT_EQ(written.find("quantization_config", field + 1), written.npos);
  EngineConfig engine;
  engine.model = out.string();
  EXPECT_TRUE(open_model_files(engine).ok());
}

TEST(QuantizeW4A16, RowsMustBeWholeGroups) {
  const ScratchDirectory scratch;
  EXPECT_THAT(error_of(options_for("", scratch.path() / "out", W4A16Target{256})),
              AllOf(HasSubstr("group_size: got 256, expected a divisor of 384"),
                    HasSubstr("q_proj.weight"), HasSubstr("such as 128")));
  for (const int group_size : {0, -16, 8, 24}) {
    EXPECT_THAT(error_of(options_for("", scratch.path() / "out", W4A16Target{group_size})),
                HasSubstr(fmt::format("group_size: got {}, expected a positive multiple of 16",
                                      group_size)));
  }
  EXPECT_TRUE(fs::is_empty(scratch.path()));
  const fs::path llama = source_path("tests/golden/models/llama");
  const ScratchDirectory tiny;
  tiny.copy(llama / "default.config.json", "config.json");
  tiny.copy(llama / "model.safetensors", "model.safetensors");
  EXPECT_THAT(
      error_of(options_for(tiny.path().string(), scratch.path() / "out", W4A16Target{})),
      HasSubstr(
          "expected a divisor of 28, the row of tensor \"model.layers.0.mlp.down_proj.weight\": "
          "no multiple of 16 divides 28; choose a GGUF target"));
}

TEST(Quantize, KeepsTheEndsOfAModelWithoutTokenizer) {
  const ScratchDirectory source;
  const ScratchDirectory scratch;
  EngineConfig engine;
  engine.model = family_checkpoint({"llama", "default"}, source);
  const ModelConfig expected = open_model_files(engine).value().config;
  ASSERT_FALSE(expected.eos_token_ids.empty());
  const fs::path out = scratch.path() / "out.gguf";
  ASSERT_EQ(error_of(options_for(engine.model, out, GgufTarget::kF16)), "");
  engine.model = out.string();
  const ModelConfig written = open_model_files(engine).value().config;
  EXPECT_EQ(written.bos_token_id, expected.bos_token_id);
  EXPECT_EQ(written.eos_token_ids, expected.eos_token_ids);
}

TEST(QuantizeRefusals, KeepTheFilesOfTheModel) {
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint({"llama", "default"}, scratch);
  const std::string weights = read_file(scratch.path() / "model.safetensors", kMaxBytes).value();
  QuantizeOptions options =
      options_for(model, scratch.path() / "model.safetensors", GgufTarget::kQ8_0);
  options.force = true;
  EXPECT_THAT(error_of(options), HasSubstr("model.safetensors is a file of the model"));
  EXPECT_TRUE(read_file(options.out, kMaxBytes).value() == weights);
  options.out = scratch.path() / "model.gguf";
  EXPECT_EQ(error_of(options), "");
  EXPECT_EQ(error_of(options), "");
}

// The unfinished output would be written over the model.
TEST(QuantizeRefusals, KeepTheModelFromTheUnfinishedOutput) {
  const ScratchDirectory scratch;
  const ScratchDirectory outputs;
  const std::string model = family_checkpoint({"llama", "default"}, scratch);
  const fs::path source = scratch.path() / "model.safetensors";
  const std::string weights = read_file(source, kMaxBytes).value();
  const fs::path out = outputs.path() / "out.gguf";
  const fs::path part = out.string() + ".part";
  outputs.write("out.gguf.part.state", "");
  for (const bool is_hard : {true, false}) {
    is_hard ? fs::create_hard_link(source, part) : fs::create_symlink(source, part);
    EXPECT_THAT(error_of(options_for(model, out, GgufTarget::kQ8_0)),
                AllOf(HasSubstr("out.gguf.part, the name of the unfinished output, is"),
                      HasSubstr("model.safetensors of the model; expected another path")));
    EXPECT_TRUE(read_file(source, kMaxBytes).value() == weights);
    fs::remove(part);
  }
  // The model's folder has the name of the unfinished output.
  const fs::path folder = outputs.path() / "w4a16";
  fs::create_directory_symlink(scratch.path(), folder.string() + ".part");
  scratch.write("model.safetensors.part", "");
  EXPECT_THAT(error_of(options_for(model, folder, W4A16Target{})),
              HasSubstr("w4a16.part, the name of the unfinished output, is"));
  EXPECT_TRUE(fs::exists(scratch.path() / "config.json"));
}

TEST(QuantizeRefusals, NameTheOutput) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("old.gguf", "old");
  QuantizeOptions options = options_for("", file, GgufTarget::kQ8_0);
  EXPECT_THAT(error_of(options), HasSubstr("old.gguf exists; expected a new path, or --force"));
  EXPECT_EQ(check_quantize(options).message(), error_of(options));
  EXPECT_EQ(read_file(file, 100).value(), "old");
  options.force = true;
  EXPECT_EQ(check_quantize(options).message(), "");
  EXPECT_EQ(error_of(options), "");
  EXPECT_GT(fs::file_size(file), 1000000U);
  options.target = W4A16Target{};
  EXPECT_THAT(error_of(options), HasSubstr("is a file; expected a directory"));
  options.target = GgufTarget::kQ8_0;
  options.out = scratch.path();
  EXPECT_THAT(error_of(options), HasSubstr("is a directory; expected a file"));
  options.out = scratch.path() / "none" / "m.gguf";
  EXPECT_THAT(error_of(options), AllOf(HasSubstr("out: the folder"), HasSubstr("does not exist")));
  options.out = scratch.path() / "folder/";
  EXPECT_THAT(error_of(options), HasSubstr("folder/\", the name of a directory, expected that of a "
                                           "GGUF file, such as "));
  EXPECT_FALSE(fs::exists(scratch.path() / "folder"));
  options.out = scratch.path() / "link.gguf";
  fs::create_symlink(scratch.path() / "absent", options.out);
  EXPECT_THAT(error_of(options),
              HasSubstr("out: " + options.out.string() + " is a symbolic link to " +
                        scratch.path().string() + "/absent, which does not exist"));
  // A file is left where a directory would be written.
  scratch.write("w4a16.part", "left");
  EXPECT_THAT(
      error_of(options_for("", scratch.path() / "w4a16", W4A16Target{})),
      HasSubstr("w4a16.part is a file; expected none, or a directory: choose another output"));
  options.out = "/proc/m.gguf";
  EXPECT_THAT(error_of(options), HasSubstr("cannot open /proc/m.gguf.part"));
}

TEST(QuantizeRefusals, NameTheSource) {
  const ScratchDirectory scratch;
  const fs::path q8 = scratch.path() / "q8.gguf";
  const fs::path out = scratch.path() / "out.gguf";
  ASSERT_EQ(error_of(options_for("", q8, GgufTarget::kQ8_0)), "");
  EXPECT_THAT(error_of(options_for(q8.string(), out, GgufTarget::kQ4_0)),
              AllOf(HasSubstr("already quantized, in GGUF blocks of Q8_0"),
                    HasSubstr("take the one that it was made from")));
  const std::string deepseek = source_path("models/quire-abacus-deepseek").string();
  EXPECT_THAT(error_of(options_for(deepseek, out, GgufTarget::kQ4_0)),
              AllOf(HasSubstr("DeepseekV2ForCausalLM"), HasSubstr("multi-head latent attention"),
                    HasSubstr("--quantization fp8")));
  const fs::path mixtral = source_path("tests/golden/models/mixtral");
  ScratchDirectory experts;
  experts.copy(mixtral / "default.config.json", "config.json");
  experts.copy(mixtral / "model.safetensors", "model.safetensors");
  EXPECT_THAT(error_of(options_for(experts.path().string(), out, W4A16Target{})),
              HasSubstr("a mixture of experts"));
  const fs::path vision = source_path("tests/golden/models/gemma3_vision");
  ScratchDirectory multimodal;
  multimodal.copy(vision / "default.config.json", "config.json");
  multimodal.copy(vision / "model.safetensors", "model.safetensors");
  EXPECT_THAT(error_of(options_for(multimodal.path().string(), out, W4A16Target{})),
              AllOf(HasSubstr("stores model.embed_tokens.weight as, or in, "
                              "language_model.model.embed_tokens.weight"),
                    HasSubstr("write a GGUF file")));
  EXPECT_THAT(error_of(options_for((scratch.path() / "none").string(), out, GgufTarget::kQ4_0)),
              HasSubstr("none"));
  fs::remove(multimodal.path() / "model.safetensors");
  EXPECT_THAT(error_of(options_for(multimodal.path().string(), out, GgufTarget::kQ4_0)),
              AllOf(HasSubstr("has no weights; expected model.safetensors or"),
                    Not(HasSubstr("load_format"))));
  EXPECT_FALSE(fs::exists(out));
}

TEST(QuantizeRefusals, NameDamagedWeights) {
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint({"llama", "default"}, scratch);
  const std::string path = (scratch.path() / "model.safetensors").string();
  const std::string weights = read_file(path, kMaxBytes).value();
  const fs::path out = scratch.path() / "out.gguf";
  // The last number of the file becomes a NaN, then one beyond F16.
  std::string damaged = weights;
  const float nan = std::nanf("");
  std::memcpy(damaged.data() + damaged.size() - sizeof(nan), &nan, sizeof(nan));
  scratch.write("model.safetensors", damaged);
  EXPECT_THAT(error_of(options_for(model, out, GgufTarget::kBf16)),
              AllOf(HasSubstr("tensor \""), HasSubstr("got nan, expected a finite number: the "
                                                      "checkpoint is damaged")));
  EXPECT_FALSE(fs::exists(out));
  // A number beyond F16, then a tensor of another shape.
  damaged = weights;
  const float large = 1e6F;
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, damaged.data(), sizeof(header_bytes));
  std::memcpy(damaged.data() + sizeof(header_bytes) + header_bytes, &large, sizeof(large));
  scratch.write("model.safetensors", damaged);
  EXPECT_THAT(
      error_of(options_for(model, out, GgufTarget::kF16)),
      HasSubstr("magnitude 1000000 exceeds 65504, the largest that F16 stores; use --to bf16"));
  EXPECT_FALSE(fs::exists(out.string() + ".part"));
  EXPECT_FALSE(fs::exists(out.string() + ".part.state"));
  scratch.write("model.safetensors", weights);
  const std::string config = read_file(scratch.path() / "config.json", 1 << 20).value();
  constexpr std::string_view kSize = "\"intermediate_size\": ";
  std::string other_size = config;
  other_size.insert(config.find(kSize) + kSize.size(), "1");
  scratch.write("config.json", other_size);
  EXPECT_THAT(error_of(options_for(model, out, GgufTarget::kBf16)), HasSubstr("shape"));
  EXPECT_FALSE(fs::exists(out.string() + ".part"));
  scratch.write("config.json", config);
  // A tensor has another name.
  damaged = weights;
  const size_t name = damaged.find("model.norm.weight");
  damaged.replace(name, 17, "model.mist.weight");
  scratch.write("model.safetensors", damaged);
  EXPECT_THAT(error_of(options_for(model, out, GgufTarget::kBf16)),
              HasSubstr("lacks 1 tensors of LlamaForCausalLM, the first of which is "
                        "\"model.norm.weight\""));
}

// Hooks that call `change` when tensor `tensor` begins, or the end is reached.
QuantizeHooks change_at(size_t tensor, std::function<void()> change) {
  QuantizeHooks hooks;
  hooks.on_progress = [tensor, change = std::move(change)](const QuantizeProgress& progress) {
    if (progress.tensor == std::min(tensor, progress.num_tensors)) change();
  };
  return hooks;
}

// No reader sees the mapping of a file after it became shorter: that would end this process.
TEST(QuantizeChangedSource, IsNoticed) {
  const ScratchDirectory source;
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint({"llama", "default"}, source);
  const fs::path weights = source.path() / "model.safetensors";
  const std::string content = read_file(weights, kMaxBytes).value();
  const std::function<void()> changes[] = {
      [&] { fs::last_write_time(weights, fs::last_write_time(weights) + std::chrono::seconds(1)); },
      [&] { fs::resize_file(weights, 100); },
      [&] { fs::remove(weights); },
  };
  for (const std::function<void()>& change : changes) {
    for (const size_t tensor : {size_t{3}, size_t{1000}}) {
      source.write("model.safetensors", content);
      const QuantizeOptions options =
          options_for(model, scratch.path() / "out.gguf", GgufTarget::kF16);
      const Status status = quantize(options, change_at(tensor, change)).status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("model.safetensors changed while it was read"));
      EXPECT_TRUE(fs::is_empty(scratch.path()));
    }
  }
}

// A copy of the embedded model.
std::string embedded_copy(const ScratchDirectory& scratch) {
  const fs::path abacus = abacus_path();
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    scratch.copy(abacus / name, name);
  }
  return scratch.path().string();
}

TEST(QuantizeChangedSource, LeavesNoDirectory) {
  const ScratchDirectory source;
  const ScratchDirectory scratch;
  const std::string model = embedded_copy(source);
  const fs::path weights = source.path() / "model.safetensors";
  const auto status = quantize(options_for(model, scratch.path() / "w4a16", W4A16Target{}),
                               change_at(40, [&] { fs::resize_file(weights, 100); }))
                          .status();
  EXPECT_THAT(status.message(), HasSubstr("model.safetensors changed while it was read"));
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(QuantizeRefusals, ErrorsOfTheSourceLeaveNothing) {
  const ScratchDirectory source;
  const ScratchDirectory scratch;
  const std::string model = embedded_copy(source);
  std::string weights = read_file(source.path() / "model.safetensors", kMaxBytes).value();
  const uint16_t nan = 0x7FC0;
  std::memcpy(weights.data() + weights.size() - sizeof(nan), &nan, sizeof(nan));
  source.write("model.safetensors", weights);
  EXPECT_THAT(error_of(options_for(model, scratch.path() / "out.gguf", GgufTarget::kBf16)),
              HasSubstr("got nan"));
  EXPECT_THAT(error_of(options_for(model, scratch.path() / "out", W4A16Target{})),
              HasSubstr("got nan"));
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(QuantizeRefusals, KeepTheNamesOfTheModel) {
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint({"llama", "default"}, scratch);
  // Not read, because there is a file with all weights.
  scratch.write("model.safetensors.index.json",
                R"({"weight_map": {"a": "shard-1.safetensors", "b": "shard-2.safetensors"}})");
  for (const char* name : {"shard-2.safetensors", "tokenizer.json", "generation_config.json",
                           "hf_quant_config.json", "modules.json"}) {
    const QuantizeOptions options = options_for(model, scratch.path() / name, GgufTarget::kF16);
    EXPECT_THAT(error_of(options),
                HasSubstr(fmt::format("{} is the name of a file of the model", name)));
    EXPECT_EQ(check_quantize(options).message(), error_of(options));
    EXPECT_FALSE(fs::exists(options.out));
  }
  EXPECT_EQ(error_of(options_for(model, scratch.path() / "shard-3.gguf", GgufTarget::kF16)), "");
  // A sharded checkpoint has no such file, and one would take the place of its shards.
  const ScratchDirectory sharded;
  const fs::path golden = source_path("tests/golden/models/mistral_sharded");
  sharded.copy(golden / "default.config.json", "config.json");
  for (const char* name : {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                           "model-00003-of-00003.safetensors", "model.safetensors.index.json"}) {
    sharded.copy(golden / name, name);
  }
  EXPECT_THAT(error_of(options_for(sharded.path().string(), sharded.path() / "model.safetensors",
                                   GgufTarget::kF16)),
              HasSubstr("model.safetensors is the name of a file of the model"));
}

TEST(QuantizeRefusals, ReplaceOnlyFilesAndDirectories) {
  const ScratchDirectory scratch;
  const fs::path fifo = scratch.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const bool to_gguf : {true, false}) {
    QuantizeOptions options = options_for("", fifo, GgufTarget::kQ8_0);
    if (!to_gguf) options.target = W4A16Target{};
    options.force = true;
    EXPECT_THAT(error_of(options), HasSubstr(fmt::format("fifo is a FIFO; expected a {}",
                                                         to_gguf ? "file" : "directory")));
    EXPECT_TRUE(fs::is_fifo(fifo));
    options.out = "/dev/null";
    EXPECT_THAT(check_quantize(options).message(), HasSubstr("/dev/null is a device"));
  }
  // The output becomes a FIFO while the run writes.
  const fs::path out = scratch.path() / "out.gguf";
  QuantizeOptions options = options_for("", out, GgufTarget::kQ8_0);
  options.force = true;
  const auto status =
      quantize(options, change_at(3, [&] { ASSERT_EQ(::mkfifo(out.c_str(), 0600), 0); })).status();
  EXPECT_THAT(status.message(), HasSubstr("out.gguf is a FIFO; expected a file"));
  EXPECT_TRUE(fs::is_fifo(out));
}

TEST(QuantizeSource, NamesTensorsThatAreNotTheModels) {
  const ScratchDirectory scratch;
  const std::string model = family_checkpoint({"llama_tied_biased", "default"}, scratch);
  EXPECT_THAT(unused_tensors(open_quantize_source(model).value()), ::testing::IsEmpty());
  const std::string weights = read_file(scratch.path() / "model.safetensors", kMaxBytes).value();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, weights.data(), sizeof(header_bytes));
  std::string header = weights.substr(sizeof(header_bytes), header_bytes);
  std::string data = weights.substr(sizeof(header_bytes) + header_bytes);
  header.insert(
      header.find('{') + 1,
      fmt::format(R"("zebra.weight":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}},)",
                  data.size(), data.size() + sizeof(float)));
  header.resize(round_up(header.size(), sizeof(uint64_t)), ' ');
  data.append(sizeof(float), '\0');
  header_bytes = header.size();
  scratch.write("model.safetensors",
                std::string(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes)) +
                    header + data);
  EXPECT_THAT(unused_tensors(open_quantize_source(model).value()), ElementsAre("zebra.weight"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(error_of(options_for(model, scratch.path() / "out.gguf", GgufTarget::kF16)), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("1 tensors of the checkpoint are not the model's, and are not written: "
                        "zebra.weight"));
}

}  // namespace
}  // namespace quire::testing
