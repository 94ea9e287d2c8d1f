// Checkpoints with quantized weights as the tools write them: matrices that are not quantized,
// quantization at load, dummy weights, and files that are damaged or contradictory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_case.h"
#include "start/model_files.h"
#include "support/fp8_checkpoint.h"
#include "support/integer_checkpoint.h"
#include "support/source_models.h"
#include "tensor/safetensors.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Fp8Checkpoint quantize(const SourceModel& source, Fp8Tool tool) {
  return quantize_checkpoint(source.config, source.bytes(), tool);
}
IntegerCheckpoint quantize(const SourceModel& source, const IntegerFormat& format) {
  return quantize_integers(source.config, source.bytes(), format);
}

EngineConfig written(const ScratchDirectory& scratch, const Fp8Checkpoint& checkpoint) {
  if (!checkpoint.quant_json.empty()) scratch.write("hf_quant_config.json", checkpoint.quant_json);
  return write_checkpoint(scratch, checkpoint.config_json, checkpoint.tensors);
}
EngineConfig written(const ScratchDirectory& scratch, const IntegerCheckpoint& checkpoint) {
  return write_checkpoint(scratch, checkpoint.config_json, checkpoint.tensors);
}

template <typename Checkpoint>
std::string error_of(const Checkpoint& checkpoint) {
  const ScratchDirectory scratch;
  return testing::error_of(written(scratch, checkpoint));
}

// The output of the checkpoint with its values multiplied by its scales.
template <typename Checkpoint>
std::vector<Collected> outputs_of_numbers(const SourceModel& source, const Checkpoint& checkpoint) {
  const ScratchDirectory scratch;
  return run(write_checkpoint(scratch, source.config, checkpoint.dequantized)).outputs;
}

using Change = std::function<void(StoredTensors&)>;

Change erase(const std::string& name) {
  return [=](StoredTensors& tensors) { ASSERT_EQ(tensors.erase(name), 1U); };
}

Change reshape(const std::string& name, std::vector<int64_t> shape) {
  return [=](StoredTensors& tensors) { tensors.at(name).shape = shape; };
}

Change retype(const std::string& name, const std::string& dtype) {
  return [=](StoredTensors& tensors) { tensors.at(name).dtype = dtype; };
}

// Overwrites the first numbers.
template <typename T>
Change set_first(const std::string& name, std::vector<T> numbers) {
  return [=](StoredTensors& tensors) {
    std::memcpy(tensors.at(name).bytes.data(), numbers.data(), numbers.size() * sizeof(T));
  };
}
Change set_number(const std::string& name, float number) {
  return set_first<float>(name, {number});
}

// Stores a tensor of 4-byte elements as I8 of the same shape.
Change store_as_bytes(const std::string& name) {
  return [=](StoredTensors& tensors) {
    StoredTensor& tensor = tensors.at(name);
    tensor.dtype = "I8";
    tensor.bytes.resize(tensor.bytes.size() / 4);
  };
}

template <typename Format>
struct Fault {
  Format format;
  Change change;
  std::vector<std::string> expected;
};

// Whether each fault is an error of one line that has the expected texts.
template <typename Format, typename Checkpoint>
void expect_errors(const std::vector<Fault<Format>>& faults,
                   const std::function<Checkpoint(const Format&)>& quantized) {
  for (const Fault<Format>& fault : faults) {
    Checkpoint checkpoint = quantized(fault.format);
    fault.change(checkpoint.tensors);
    const std::string error = error_of(checkpoint);
    EXPECT_THAT(error, Not(HasSubstr("\n")));
    for (const std::string& text : fault.expected) EXPECT_THAT(error, HasSubstr(text));
  }
}

// ---- Weights that load

TEST(Fp8Files, AMatrixThatIsNotQuantizedKeepsItsType) {
  const SourceModel source = golden_model("llama_bf16");
  Fp8Checkpoint mixed = quantize(source, Fp8Tool::kCompressedChannel);
  const std::string module = "model.layers.0.mlp.down_proj";
  mixed.tensors[module + ".weight"] = mixed.dequantized.at(module + ".weight");
  mixed.tensors.erase(module + ".weight_scale");
  const ScratchDirectory scratch;
  expect_same(run(written(scratch, mixed)).outputs, outputs_of_numbers(source, mixed));
}

TEST(IntegerFiles, AMatrixThatIsNotQuantizedKeepsItsType) {
  const SourceModel source = random_model();
  for (const IntegerTool tool : {IntegerTool::kGptq, IntegerTool::kCompressedBytes}) {
    IntegerCheckpoint mixed =
        quantize(source, {.tool = tool, .bits = 8, .group_size = -1, .symmetric = true});
    const std::string module = "model.layers.0.mlp.down_proj";
    std::erase_if(mixed.tensors,
                  [&](const auto& tensor) { return tensor.first.starts_with(module); });
    mixed.tensors[module + ".weight"] = mixed.dequantized.at(module + ".weight");
    const ScratchDirectory scratch;
    EXPECT_LT(
        largest_difference(run(written(scratch, mixed)).outputs, outputs_of_numbers(source, mixed)),
        0.02);
  }
}

TEST(Fp8Files, QuantizesAtLoad) {
  for (const SourceModel& source : {golden_model("llama"), golden_model("llama_bf16")}) {
    const ScratchDirectory scratch;
    const Outcome expected = run(written(scratch, quantize(source, Fp8Tool::kCompressedChannel)));
    EngineConfig config = write_checkpoint(scratch, source.config, source.weights);
    const Outcome plain = run(config);
    config.quantization = "fp8";
    const Outcome got = run(config);
    expect_same(got.outputs, expected.outputs);
    EXPECT_EQ(got.weight_bytes, expected.weight_bytes);
    EXPECT_NE(got.outputs[2].logprobs[0][0].logprob, plain.outputs[2].logprobs[0][0].logprob);
  }
}

// The matrices of keys and values of latent vectors keep their type.
TEST(Fp8Files, QuantizesDeepSeekAtLoad) {
  const SourceModel source = golden_model("deepseek_v2_q_lora");
  Fp8Checkpoint quantized = quantize(source, Fp8Tool::kCompressedChannel);
  const auto original = Safetensors::parse(source.bytes(), "weights").value();
  for (const std::string& name : original.names()) {
    if (!name.ends_with("kv_b_proj.weight")) continue;
    const SafetensorsEntry& entry = *original.find(name);
    quantized.tensors[name] = {entry.dtype, entry.shape, {entry.bytes.begin(), entry.bytes.end()}};
    ASSERT_EQ(quantized.tensors.erase(name + "_scale"), 1U);
  }
  const ScratchDirectory scratch;
  const Outcome expected = run(written(scratch, quantized));
  EngineConfig config = write_checkpoint(scratch, source.config, source.weights);
  config.quantization = "fp8";
  expect_same(run(config).outputs, expected.outputs);
}

// Old versions of AutoGPTQ store a bias of zeros for every matrix.
TEST(IntegerFiles, BiasesOfZerosAreLeftOut) {
  const SourceModel source = random_model();
  IntegerCheckpoint checkpoint = quantize(source, {.tool = IntegerTool::kGptq});
  const std::string name = "model.layers.1.self_attn.q_proj.bias";
  std::vector<float> bias(256, 0.0F);
  checkpoint.tensors[name] = stored_floats({256}, bias);
  EXPECT_EQ(error_of(checkpoint), "");
  bias[7] = 0.5F;
  checkpoint.tensors[name] = stored_floats({256}, bias);
  EXPECT_THAT(error_of(checkpoint),
              AllOf(HasSubstr(name), HasSubstr("got 0.5 as number 7, expected zeros")));
}

TEST(IntegerFiles, DummyWeightsHaveTheFormat) {
  const SourceModel source = random_model();
  const std::vector<IntegerFormat> formats = {{.tool = IntegerTool::kAwq},
                                              {.tool = IntegerTool::kGptq},
                                              {.tool = IntegerTool::kGptq, .act_order = true},
                                              {.tool = IntegerTool::kCompressedPack}};
  for (const IntegerFormat& format : formats) {
    const ScratchDirectory scratch;
    EngineConfig config = written(scratch, quantize(source, format));
    const Outcome real = run(config);
    EXPECT_EQ(real.weight_dtype, "i4");
    config.load_format = "dummy";
    const Outcome dummy = run(config);
    ASSERT_EQ(dummy.outputs.size(), 3U);
    for (const Collected& output : dummy.outputs) {
      EXPECT_EQ(output.token_ids.size(), 8U);
      EXPECT_TRUE(std::isfinite(output.logprobs[0][0].logprob));
    }
    EXPECT_EQ(dummy.weight_bytes, real.weight_bytes);
  }
}

// The products of integers and scales have the standard deviation of other dummy matrices.
TEST(IntegerFiles, DummyWeightsHaveOneMagnitudeForAllBits) {
  const SourceModel source = random_model();
  for (const IntegerTool tool : {IntegerTool::kGptq, IntegerTool::kCompressedPack}) {
    for (const int bits : {4, 8}) {
      const ScratchDirectory scratch;
      EngineConfig config = written(scratch, quantize(source, {.tool = tool, .bits = bits}));
      config.load_format = "dummy";
      const ModelFiles files = open_model_files(config).value();
      const std::string_view suffix = tool == IntegerTool::kGptq ? ".scales" : ".weight_scale";
      constexpr int64_t kNumScales = 1000;
      const TensorView scales =
          files.weights
              ->tensor("model.layers.0.self_attn.q_proj" + std::string(suffix), {kNumScales})
              .value();
      double mean = 0;
      for (int64_t i = 0; i < kNumScales; ++i) mean += element_as_f32(scales, i) / kNumScales;
      const double num_integers = 1 << bits;
      const double deviation =
          std::sqrt((num_integers * num_integers - 1) / 12);  // of uniform ones
      EXPECT_NEAR(mean * deviation, 0.02, 0.001) << bits;
    }
  }
}

// ---- Faults

TEST(Fp8Files, QuantizationAtLoadIsRefusedByName) {
  const SourceModel source = golden_model("llama");
  const ScratchDirectory scratch;
  EngineConfig config = written(scratch, quantize(source, Fp8Tool::kModelopt));
  config.quantization = "fp8";
  EXPECT_THAT(testing::error_of(config),
              HasSubstr("quantization: got fp8 for a checkpoint that is already "
                        "quantized"));
  config.quantization = "none";
  config.load_format = "dummy";
  EXPECT_THAT(testing::error_of(config),
              HasSubstr("load_format: got dummy for a quantized checkpoint"));
  config.quantization = "int8";
  EXPECT_THAT(testing::error_of(config), HasSubstr("quantization: must be none or fp8, got int8"));
}

TEST(Fp8Files, NumbersThatCannotBeQuantizedAreNamed) {
  const SourceModel source = golden_model("llama");
  StoredTensors tensors = quantize(source, Fp8Tool::kModelopt).dequantized;
  const std::string name = "model.layers.1.self_attn.k_proj.weight";
  std::memcpy(tensors.at(name).bytes.data() + 8, &kNan, sizeof(kNan));
  const ScratchDirectory scratch;
  EngineConfig config = write_checkpoint(scratch, source.config, tensors);
  config.quantization = "fp8";
  EXPECT_THAT(testing::error_of(config),
              AllOf(HasSubstr(name), HasSubstr("model.safetensors"),
                    HasSubstr("cannot be quantized; got an infinity or a NaN in row 0")));
}

TEST(Fp8Files, FaultyTensorsAreNamedWithTheirFile) {
  const SourceModel source = golden_model("llama");
  const std::string q = "model.layers.0.self_attn.q_proj";
  const std::vector<Fault<Fp8Tool>> faults = {
      {Fp8Tool::kModelopt, erase(q + ".weight_scale"), {q + ".weight_scale", "missing"}},
      {Fp8Tool::kModelopt, erase(q + ".input_scale"), {q + ".input_scale", "missing"}},
      {Fp8Tool::kModelopt, set_number(q + ".weight_scale", 0), {q + ".weight_scale", "got 0 as"}},
      {Fp8Tool::kCompressedTensor,
       set_number(q + ".weight_scale", -2),
       {"model.safetensors: tensor ", q + ".weight_scale", "got -2 as",
        "expected finite numbers above 0; download"}},
      {Fp8Tool::kModelopt, set_number(q + ".weight_scale", kNan), {q + ".weight_scale", "got nan"}},
      {Fp8Tool::kModelopt,
       set_number(q + ".input_scale", kInfinity),
       {q + ".input_scale", "got inf"}},
      {Fp8Tool::kModelopt,
       set_number("model.layers.1.self_attn.v_proj.v_scale", 0),
       {"model.layers.1.self_attn.v_proj.v_scale", "got 0 as"}},
      {Fp8Tool::kModelopt,
       set_number("model.layers.1.self_attn.k_proj.k_scale", kNan),
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
         tensors[q + ".input_scale"] = stored_floats({1}, {&scale, 1});
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
      {Fp8Tool::kCompressedChannel, retype(q + ".weight", "F8_E5M2"), {q + ".weight", "F8_E5M2"}},
      {Fp8Tool::kHuggingFaceBlock,
       retype(q + ".weight", "I8"),
       {q + ".weight", "got i8, expected f32, f16 or bf16"}}};
  expect_errors<Fp8Tool, Fp8Checkpoint>(
      faults, [&](const Fp8Tool& tool) { return quantize(source, tool); });
}

TEST(Fp8Files, ConfigurationsThatContradictAreNamed) {
  const SourceModel source = golden_model("llama");
  Fp8Checkpoint checkpoint = quantize(source, Fp8Tool::kHuggingFaceBlock);
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

TEST(IntegerFiles, FaultyTensorsAreNamedWithTheirFile) {
  const SourceModel source = golden_model("llama");
  const std::string q = "model.layers.0.self_attn.q_proj";
  const std::string k = "model.layers.0.self_attn.k_proj";
  const IntegerFormat gptq = {.tool = IntegerTool::kGptq, .group_size = 16};
  const IntegerFormat awq = {.tool = IntegerTool::kAwq, .group_size = 16};
  IntegerFormat ordered = gptq;
  ordered.act_order = true;
  const IntegerFormat packed = {
      .tool = IntegerTool::kCompressedPack, .group_size = -1, .scales = "F32"};
  const IntegerFormat bytes = {.tool = IntegerTool::kCompressedBytes,
                               .bits = 8,
                               .group_size = -1,
                               .symmetric = true,
                               .scales = "F32"};
  const std::vector<Fault<IntegerFormat>> faults = {
      {gptq, erase(q + ".scales"), {q + ".scales", "missing"}},
      {gptq, erase(q + ".qzeros"), {q + ".qzeros", "missing"}},
      {gptq, reshape(q + ".qweight", {32, 4}), {q + ".qweight", "got [32, 4], expected [4, 32]"}},
      {gptq, retype(q + ".qzeros", "F32"), {q + ".qzeros", "got f32, expected i32"}},
      // Integers of one byte where others are expected, or none.
      {gptq,
       store_as_bytes(q + ".qweight"),
       {"model.safetensors: tensor", q + ".qweight", "got i8, expected i32"}},
      {awq, store_as_bytes(q + ".qweight"), {q + ".qweight", "got i8, expected i32"}},
      {packed, store_as_bytes(q + ".weight_packed"), {q + ".weight_packed", "got i8"}},
      {gptq,
       store_as_bytes("model.embed_tokens.weight"),
       {"model.embed_tokens.weight", "got i8, expected f32, f16 or bf16"}},
      {bytes,
       [&](StoredTensors& tensors) {
         StoredTensor& values = tensors.at(q + ".weight");
         values.dtype = "I32";
         values.bytes.resize(4 * values.bytes.size());
       },
       {q + ".weight", "got i32, expected f32, f16 or bf16"}},
      {gptq, set_first<uint16_t>(q + ".scales", {0x7C00}), {q + ".scales", "got inf as number 0"}},
      {gptq,
       set_first<int32_t>(q + ".g_idx", {-1}),
       {"model.safetensors: tensor", q + ".g_idx", "got group -1 of column 0, expected 0 to 1"}},
      {gptq,
       set_first<int32_t>(q + ".g_idx", {0, 2}),
       {q + ".g_idx", "got group 2 of column 1, expected 0 to 1"}},
      {gptq,
       set_first<int32_t>(q + ".g_idx", {1}),
       {q + ".g_idx", "got 15 columns of group 0, expected 16"}},
      {ordered, erase(q + ".g_idx"), {q + ".g_idx", "missing"}},
      {ordered,
       [&](StoredTensors& tensors) {
         auto& groups = tensors.at(k + ".g_idx").bytes;
         std::reverse(reinterpret_cast<int32_t*>(groups.data()),
                      reinterpret_cast<int32_t*>(groups.data()) + 32);
       },
       {q, k, "stacked and have their columns in different orders"}},
      // A matrix of the stack that is not quantized.
      {gptq,
       [&](StoredTensors& tensors) {
         for (const char* suffix : {".qweight", ".qzeros", ".scales", ".g_idx"}) {
           tensors.erase(k + suffix);
         }
         tensors[k + ".weight"] = stored_floats({16, 32}, std::vector<float>(512));
       },
       {k + ".weight", "got f32, expected i4"}},
      {packed,
       set_first<float>(q + ".weight_scale", {kNan}),
       {q + ".weight_scale", "got nan as number 0, expected finite numbers; download"}},
      {packed, erase(q + ".weight_zero_point"), {q + ".weight_zero_point", "missing"}},
      {packed,
       set_first<int64_t>(q + ".weight_shape", {32, 40}),
       {q + ".weight_shape", "got [32, 40], expected [32, 32]"}},
      {bytes, set_first<float>(q + ".input_scale", {kInfinity}), {q + ".input_scale", "got inf"}},
      {bytes, erase(q + ".weight_scale"), {q + ".weight_scale", "missing"}}};
  expect_errors<IntegerFormat, IntegerCheckpoint>(faults, [&](const IntegerFormat& format) {
    IntegerCheckpoint checkpoint = quantize(source, format);
    if (format.group_size != 16) return checkpoint;
    // The MLP's matrices have 28 columns.
    const auto is_down = [](const auto& tensor) {
      return tensor.first.find("mlp.down_proj") != std::string::npos;
    };
    std::erase_if(checkpoint.tensors, is_down);
    for (const auto& tensor : checkpoint.dequantized) {
      if (is_down(tensor)) checkpoint.tensors.insert(tensor);
    }
    return checkpoint;
  });
}

// A checkpoint whose config.json has no quantization.
TEST(IntegerFiles, BytesInAnUnquantizedModelAreRefusedByName) {
  const SourceModel source = golden_model("llama");
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight"}) {
    IntegerCheckpoint checkpoint =
        quantize(source, {.tool = IntegerTool::kCompressedPack, .group_size = -1});
    checkpoint.config_json = source.config;
    checkpoint.tensors = checkpoint.dequantized;
    store_as_bytes(name)(checkpoint.tensors);
    EXPECT_THAT(error_of(checkpoint),
                AllOf(HasSubstr(name), HasSubstr("got i8, expected f32, f16 or bf16")));
  }
}

TEST(IntegerFiles, GroupsAndWordsThatAreNotWholeAreNamed) {
  const SourceModel source = golden_model("llama");
  const auto error = [&](const IntegerFormat& format) {
    return error_of(quantize(source, format));
  };
  EXPECT_THAT(error({.tool = IntegerTool::kCompressedPack, .group_size = 16}),
              AllOf(HasSubstr("model.layers.0.mlp.down_proj.weight_packed"),
                    HasSubstr("got 28 columns, expected a multiple of the 16 columns of a group")));
  EXPECT_THAT(error({.tool = IntegerTool::kGptq, .group_size = -1}),
              AllOf(HasSubstr("model.layers.0.mlp."),
                    HasSubstr("got 28 rows, expected a multiple of the 8 rows of a word")));
}

TEST(QuantizedFiles, TruncatedOnesAreRefused) {
  const SourceModel source = golden_model("llama");
  const ScratchDirectory fp8;
  const ScratchDirectory integers;
  for (const EngineConfig& config :
       {written(fp8, quantize(source, Fp8Tool::kHuggingFaceBlock)),
        written(integers,
                quantize(source, {.tool = IntegerTool::kCompressedPack, .group_size = -1}))}) {
    const fs::path file = fs::path(config.model) / "model.safetensors";
    const uintmax_t whole = fs::file_size(file);
    for (const uintmax_t size : {whole - 1, whole / 2, uintmax_t{7}, uintmax_t{0}}) {
      fs::resize_file(file, size);
      EXPECT_THAT(testing::error_of(config),
                  AllOf(HasSubstr("model.safetensors"), Not(HasSubstr("\n"))));
    }
  }
}

}  // namespace
}  // namespace quire::testing
