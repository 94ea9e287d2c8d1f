// A checkpoint in FP8 gives the bits of the checkpoint with its values multiplied by its scales,
// for every format of the tools that quantize; damaged and contradictory ones are refused by name.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/tiny_engine.h"
#include "support/fp8_checkpoint.h"
#include "support/scratch_directory.h"
#include "support/source_models.h"
#include "tensor/safetensors.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::abacus_model;
using ::testing::AllOf;
using testing::Collected;
using testing::Fp8Checkpoint;
using testing::Fp8Tool;
using testing::golden_model;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::quantize_checkpoint;
using testing::random_model;
using testing::safetensors_file;
using testing::ScratchDirectory;
using testing::SourceModel;
using testing::StoredTensor;
using testing::StoredTensors;

EngineConfig config_for(const fs::path& model) {
  EngineConfig config;
  config.model = model.string();
  config.device = "cpu";
  config.num_threads = 2;
  config.max_model_len = 64;
  return config;
}

EngineConfig written(const ScratchDirectory& scratch, const Fp8Checkpoint& checkpoint) {
  scratch.write("config.json", checkpoint.config_json);
  scratch.write("model.safetensors", safetensors_file(checkpoint.tensors));
  if (!checkpoint.quant_json.empty()) scratch.write("hf_quant_config.json", checkpoint.quant_json);
  return config_for(scratch.path());
}

struct Outcome {
  std::vector<Collected> outputs;
  int64_t weight_bytes = 0;
};

Outcome run(const EngineConfig& config) {
  std::vector<Request> requests;
  for (const int length : {1, 7, 30}) {
    std::vector<int32_t> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back(3 + (i * 29 + length) % 60);
    requests.push_back(testing::greedy(std::move(prompt), 8));
    requests.back().sampling.logprobs = 1;
    requests.back().sampling.prompt_logprobs = 1;
  }
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return {};
  return {testing::run_all(*engine, requests), engine->model_info().weight_bytes};
}

// The output of the checkpoint with its values multiplied by its scales.
Outcome run_dequantized(const SourceModel& source, const Fp8Checkpoint& checkpoint) {
  const ScratchDirectory scratch;
  scratch.write("config.json", source.config);
  scratch.write("model.safetensors", safetensors_file(checkpoint.dequantized));
  return run(config_for(scratch.path()));
}

void expect_dequantized(const SourceModel& source, const Fp8Checkpoint& checkpoint) {
  const Outcome expected = run_dequantized(source, checkpoint);
  const ScratchDirectory scratch;
  const Outcome got = run(written(scratch, checkpoint));
  testing::expect_same(got.outputs, expected.outputs);
  EXPECT_EQ(got.weight_bytes, expected.weight_bytes) << "FP8 takes the bytes of its products";
}

constexpr Fp8Tool kTools[] = {Fp8Tool::kModelopt,          Fp8Tool::kCompressedTensor,
                              Fp8Tool::kCompressedChannel, Fp8Tool::kCompressedBlock,
                              Fp8Tool::kHuggingFaceTensor, Fp8Tool::kHuggingFaceBlock};

TEST(Fp8Engine, EveryFormatIsTheModelOfItsNumbers) {
  const SourceModel source = random_model();
  for (const Fp8Tool tool : kTools) {
    SCOPED_TRACE(static_cast<int>(tool));
    expect_dequantized(source, quantize_checkpoint(source.config, source.bytes(), tool));
  }
}

TEST(Fp8Engine, EveryFamilyIsTheModelOfItsNumbers) {
  for (const char* name : {"llama", "llama_bf16", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3",
                           "deepseek_v2", "deepseek_v2_q_lora"}) {
    SCOPED_TRACE(name);
    const SourceModel source = golden_model(name);
    for (const char* scales : {"F32", "BF16"}) {
      expect_dequantized(source, quantize_checkpoint(source.config, source.bytes(),
                                                     Fp8Tool::kCompressedChannel, scales));
    }
  }
}

TEST(Fp8Engine, DeepSeekInBlocksIsTheModelOfItsNumbers) {
  const SourceModel source = golden_model("deepseek_v3");
  expect_dequantized(
      source, quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kHuggingFaceBlock));
}

TEST(Fp8Engine, AMatrixThatIsNotQuantizedKeepsItsType) {
  const SourceModel source = golden_model("llama_bf16");
  Fp8Checkpoint mixed =
      quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kCompressedChannel);
  const std::string module = "model.layers.0.mlp.down_proj";
  mixed.tensors[module + ".weight"] = mixed.dequantized.at(module + ".weight");
  mixed.tensors.erase(module + ".weight_scale");
  expect_dequantized(source, mixed);
}

TEST(Fp8Engine, QuantizesAtLoad) {
  for (const SourceModel& source :
       {golden_model("llama"), golden_model("llama_bf16"), abacus_model()}) {
    const ScratchDirectory scratch;
    const Outcome expected = run(written(
        scratch, quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kCompressedChannel)));
    scratch.write("config.json", source.config);
    scratch.write("model.safetensors", source.weights);
    EngineConfig config = config_for(scratch.path());
    const Outcome plain = run(config);
    config.quantization = "fp8";
    const Outcome got = run(config);
    testing::expect_same(got.outputs, expected.outputs);
    EXPECT_EQ(got.weight_bytes, expected.weight_bytes);
    EXPECT_NE(got.outputs[2].logprobs[0][0].logprob, plain.outputs[2].logprobs[0][0].logprob);
  }
}

// The matrices of keys and values of latent vectors keep their type.
TEST(Fp8Engine, QuantizesDeepSeekAtLoad) {
  const SourceModel source = golden_model("deepseek_v2_q_lora");
  Fp8Checkpoint quantized =
      quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kCompressedChannel);
  const auto original = Safetensors::parse(source.bytes(), "weights").value();
  for (const std::string& name : original.names()) {
    if (!name.ends_with("kv_b_proj.weight")) continue;
    const SafetensorsEntry& entry = *original.find(name);
    quantized.tensors[name] = {entry.dtype, entry.shape, {entry.bytes.begin(), entry.bytes.end()}};
    ASSERT_EQ(quantized.tensors.erase(name + "_scale"), 1U);
  }
  const ScratchDirectory scratch;
  const Outcome expected = run(written(scratch, quantized));
  scratch.write("config.json", source.config);
  scratch.write("model.safetensors", source.weights);
  EngineConfig config = config_for(scratch.path());
  config.quantization = "fp8";
  testing::expect_same(run(config).outputs, expected.outputs);
}

std::string error_of(const EngineConfig& config) {
  const auto engine = Engine::create(config);
  return engine.ok() ? "" : engine.status().message();
}

std::string error_of(const Fp8Checkpoint& checkpoint) {
  const ScratchDirectory scratch;
  return error_of(written(scratch, checkpoint));
}

TEST(Fp8Engine, QuantizationAtLoadIsRefusedByName) {
  const SourceModel source = golden_model("llama");
  const ScratchDirectory scratch;
  EngineConfig config =
      written(scratch, quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kModelopt));
  config.quantization = "fp8";
  EXPECT_THAT(error_of(config), HasSubstr("quantization: got fp8 for a checkpoint that is already "
                                          "quantized"));
  config.quantization = "none";
  config.load_format = "dummy";
  EXPECT_THAT(error_of(config), HasSubstr("load_format: got dummy for a quantized checkpoint"));
  config.quantization = "int8";
  EXPECT_THAT(error_of(config), HasSubstr("quantization: must be none or fp8, got int8"));
}

TEST(Fp8Engine, NumbersThatCannotBeQuantizedAreNamed) {
  const SourceModel source = golden_model("llama");
  StoredTensors tensors =
      quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kModelopt).dequantized;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string name = "model.layers.1.self_attn.k_proj.weight";
  std::memcpy(tensors.at(name).bytes.data() + 8, &nan, sizeof(nan));
  const ScratchDirectory scratch;
  scratch.write("config.json", source.config);
  scratch.write("model.safetensors", safetensors_file(tensors));
  EngineConfig config = config_for(scratch.path());
  config.quantization = "fp8";
  EXPECT_THAT(error_of(config),
              AllOf(HasSubstr(name), HasSubstr("model.safetensors"),
                    HasSubstr("cannot be quantized; got an infinity or a NaN in row 0")));
}

using Change = std::function<void(StoredTensors&)>;

Change set_number(const std::string& name, float number) {
  return [=](StoredTensors& tensors) {
    std::memcpy(tensors.at(name).bytes.data(), &number, sizeof(number));
  };
}

Change erase(const std::string& name) {
  return [=](StoredTensors& tensors) { ASSERT_EQ(tensors.erase(name), 1U); };
}

Change reshape(const std::string& name, std::vector<int64_t> shape) {
  return [=](StoredTensors& tensors) { tensors.at(name).shape = shape; };
}

TEST(Fp8Engine, FaultyTensorsAreNamedWithTheirFile) {
  const SourceModel source = golden_model("llama");
  const std::string q = "model.layers.0.self_attn.q_proj";
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    Fp8Tool tool;
    Change change;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {Fp8Tool::kModelopt, erase(q + ".weight_scale"), {q + ".weight_scale", "missing"}},
      {Fp8Tool::kModelopt, erase(q + ".input_scale"), {q + ".input_scale", "missing"}},
      {Fp8Tool::kModelopt, set_number(q + ".weight_scale", 0), {q + ".weight_scale", "got 0 as"}},
      {Fp8Tool::kModelopt, set_number(q + ".weight_scale", -1), {q + ".weight_scale", "got -1 as"}},
      {Fp8Tool::kModelopt, set_number(q + ".weight_scale", nan), {q + ".weight_scale", "got nan"}},
      {Fp8Tool::kModelopt,
       set_number(q + ".input_scale", infinity),
       {q + ".input_scale", "got inf"}},
      {Fp8Tool::kModelopt,
       set_number("model.layers.1.self_attn.v_proj.v_scale", 0),
       {"model.layers.1.self_attn.v_proj.v_scale", "got 0 as"}},
      {Fp8Tool::kModelopt,
       set_number("model.layers.1.self_attn.k_proj.k_scale", nan),
       {"model.layers.1.self_attn.k_proj.k_scale", "got nan as"}},
      {Fp8Tool::kCompressedChannel,
       reshape(q + ".weight_scale", {1, 32}),
       {q + ".weight_scale", "another shape", "got [1, 32], expected [32, 1]"}},
      {Fp8Tool::kHuggingFaceBlock,
       erase(q + ".weight_scale_inv"),
       {q + ".weight_scale_inv", "missing"}},
      // Scales that the configuration does not mention.
      {Fp8Tool::kCompressedChannel,
       [&](StoredTensors& tensors) {
         const float scale = 1;
         tensors[q + ".input_scale"] = testing::stored_floats({1}, {&scale, 1});
       },
       {q + ".input_scale", "does not use"}},
      // The query's values without those of the keys.
      {Fp8Tool::kCompressedChannel,
       [&](StoredTensors& tensors) {
         StoredTensor& values = tensors.at("model.layers.0.self_attn.k_proj.weight");
         values.dtype = "F32";
         values.bytes.resize(values.bytes.size() * 4);
       },
       {"k_proj.weight", "got f32, expected fp8_e4m3"}},
      {Fp8Tool::kCompressedChannel,
       [&](StoredTensors& tensors) { tensors.at(q + ".weight").dtype = "F8_E5M2"; },
       {q + ".weight", "F8_E5M2"}},
      {Fp8Tool::kHuggingFaceBlock,
       [&](StoredTensors& tensors) { tensors.at(q + ".weight").dtype = "I8"; },
       {q + ".weight", "got i8, expected f32, f16 or bf16"}}};
  for (const Case& fault : cases) {
    Fp8Checkpoint checkpoint = quantize_checkpoint(source.config, source.bytes(), fault.tool);
    fault.change(checkpoint.tensors);
    const std::string error = error_of(checkpoint);
    EXPECT_THAT(error, Not(HasSubstr("\n")));
    for (const std::string& text : fault.expected) EXPECT_THAT(error, HasSubstr(text));
  }
}

TEST(Fp8Engine, AWrongScaleNamesTheFile) {
  const SourceModel source = golden_model("llama");
  Fp8Checkpoint checkpoint =
      quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kCompressedTensor);
  set_number("model.layers.1.mlp.up_proj.weight_scale", -2)(checkpoint.tensors);
  EXPECT_THAT(error_of(checkpoint), AllOf(HasSubstr("model.safetensors: tensor "),
                                          HasSubstr("expected finite numbers above 0; download")));
}

TEST(Fp8Engine, ATruncatedFileIsRefused) {
  const SourceModel source = golden_model("llama");
  const Fp8Checkpoint checkpoint =
      quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kHuggingFaceBlock);
  const std::vector<std::byte> bytes = testing::safetensors_file(checkpoint.tensors);
  const ScratchDirectory scratch;
  const EngineConfig config = written(scratch, checkpoint);
  for (const size_t size : {bytes.size() - 1, bytes.size() / 2, size_t{7}, size_t{0}}) {
    fs::resize_file(scratch.path() / "model.safetensors", size);
    EXPECT_THAT(error_of(config), AllOf(HasSubstr("model.safetensors"), Not(HasSubstr("\n"))));
  }
}

TEST(Fp8Engine, ConfigurationsThatContradictAreNamed) {
  const SourceModel source = golden_model("llama");
  Fp8Checkpoint checkpoint =
      quantize_checkpoint(source.config, source.bytes(), Fp8Tool::kHuggingFaceBlock);
  checkpoint.quant_json = R"({"quantization":{"quant_algo":"FP8"}})";
  EXPECT_THAT(error_of(checkpoint),
              AllOf(HasSubstr("hf_quant_config.json: quantization; got fp8_e4m3 with a scale per "
                              "tensor and static scales of its inputs"),
                    HasSubstr("expected fp8_e4m3 with a scale per block of 128 x 128")));
  checkpoint.quant_json = R"({"quantization":{"quant_algo":"NVFP4","group_size":16}})";
  EXPECT_THAT(error_of(checkpoint), AllOf(HasSubstr("\"NVFP4\", groups of 16"),
                                          HasSubstr("is not supported; expected FP8")));
  // FP8 values without a configuration that says so.
  checkpoint.quant_json.clear();
  checkpoint.config_json = source.config;
  EXPECT_THAT(error_of(checkpoint), AllOf(HasSubstr("_proj.weight"), HasSubstr("got fp8_e4m3")));
}

}  // namespace
}  // namespace quire
