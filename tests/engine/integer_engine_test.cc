// A checkpoint in integers of 4 or 8 bits gives the output of the checkpoint in F32 that its
// integers stand for, for every format of the tools that quantize, whatever the batch and the
// threads; damaged and contradictory ones are refused by name.
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
#include <vector>

#include "engine/logprob_difference.h"
#include "engine/tiny_engine.h"
#include "start/model_files.h"
#include "support/integer_checkpoint.h"
#include "support/scratch_directory.h"
#include "support/source_models.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using testing::abacus_model;
using ::testing::AllOf;
using testing::Collected;
using testing::golden_model;
using ::testing::HasSubstr;
using testing::IntegerCheckpoint;
using testing::IntegerFormat;
using testing::IntegerTool;
using ::testing::Not;
using testing::quantize_integers;
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
  config.kv_cache_memory = int64_t{8} << 20;
  config.kv_cache_dtype = "f32";  // a narrower cache would round a small difference to a large one
  return config;
}

EngineConfig written(const ScratchDirectory& scratch, const IntegerCheckpoint& checkpoint) {
  scratch.write("config.json", checkpoint.config_json);
  scratch.write("model.safetensors", safetensors_file(checkpoint.tensors));
  return config_for(scratch.path());
}

std::vector<Request> requests() {
  std::vector<Request> all;
  for (const int length : {1, 7, 30}) {
    std::vector<int32_t> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back(3 + (i * 29 + length) % 60);
    all.push_back(testing::greedy(std::move(prompt), 8));
    all.back().sampling.logprobs = 1;
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

struct Outcome {
  std::vector<Collected> outputs;
  int64_t weight_bytes = 0;
  std::string weight_dtype;
};

Outcome run(const EngineConfig& config) {
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return {};
  return {testing::run_all(*engine, requests()), engine->model_info().weight_bytes,
          engine->model_info().weight_dtype};
}

Outcome run_dequantized(const SourceModel& source, const IntegerCheckpoint& checkpoint) {
  const ScratchDirectory scratch;
  scratch.write("config.json", source.config);
  scratch.write("model.safetensors", safetensors_file(checkpoint.dequantized));
  return run(config_for(scratch.path()));
}

// The activations of products with integers are rounded to 16 bits per block of 256. This changes a
// log probability by up to 0.012 here.
constexpr double kBound = 0.02;

void expect_close(const std::vector<PositionLogprobs>& got,
                  const std::vector<PositionLogprobs>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].empty(), expected[i].empty());
    if (got[i].empty()) continue;
    ASSERT_NEAR(got[i][0].logprob, expected[i][0].logprob, kBound) << i;
    // Two tokens that are equally likely within the bound; what follows them differs.
    if (got[i][0].token_id != expected[i][0].token_id) return;
  }
}

void expect_dequantized(const SourceModel& source, const IntegerCheckpoint& checkpoint) {
  const Outcome expected = run_dequantized(source, checkpoint);
  const ScratchDirectory scratch;
  const Outcome got = run(written(scratch, checkpoint));
  ASSERT_EQ(got.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < got.outputs.size(); ++i) {
    expect_close(got.outputs[i].logprobs, expected.outputs[i].logprobs);
    expect_close(got.outputs[i].prompt_logprobs, expected.outputs[i].prompt_logprobs);
  }
  EXPECT_LT(got.weight_bytes, expected.weight_bytes);
}

std::string name_of(const IntegerFormat& format) {
  return fmt::format("tool {}, {} bits, groups of {}, {}{}, {}", static_cast<int>(format.tool),
                     format.bits, format.group_size, format.symmetric ? "symmetric" : "asymmetric",
                     format.act_order ? " in act-order" : "", format.scales);
}

std::vector<IntegerFormat> all_formats() {
  using Tool = IntegerTool;
  std::vector<IntegerFormat> formats;
  for (const int64_t group_size : {32, 64, 128, -1}) {
    formats.push_back({.tool = Tool::kAwq, .group_size = group_size});
  }
  for (const Tool tool : {Tool::kGptq, Tool::kGptqV2}) {
    for (const int bits : {4, 8}) {
      for (const bool symmetric : {true, false}) {
        for (const bool act_order : {true, false}) {
          formats.push_back({.tool = tool,
                             .bits = bits,
                             .group_size = bits == 4 ? 128 : 32,
                             .symmetric = symmetric,
                             .act_order = act_order});
        }
      }
    }
  }
  formats.push_back({.tool = Tool::kGptq, .group_size = -1, .symmetric = true, .act_order = true});
  for (const int bits : {4, 8}) {
    for (const bool symmetric : {true, false}) {
      for (const bool act_order : {true, false}) {
        formats.push_back({.tool = Tool::kCompressedPack,
                           .bits = bits,
                           .group_size = 128,
                           .symmetric = symmetric,
                           .act_order = act_order,
                           .scales = "BF16"});
      }
      for (const int64_t group_size : {-1, 0}) {
        if (group_size == 0 && !symmetric) continue;
        formats.push_back({.tool = Tool::kCompressedPack,
                           .bits = bits,
                           .group_size = group_size,
                           .symmetric = symmetric,
                           .scales = "F32"});
      }
    }
  }
  for (const bool symmetric : {true, false}) {
    for (const int64_t group_size : {-1, 0}) {
      formats.push_back({.tool = Tool::kCompressedBytes,
                         .bits = 8,
                         .group_size = group_size,
                         .symmetric = symmetric,
                         .scales = "BF16"});
    }
  }
  return formats;
}

TEST(IntegerEngine, EveryFormatIsTheModelOfItsNumbers) {
  const SourceModel source = random_model();
  for (const IntegerFormat& format : all_formats()) {
    SCOPED_TRACE(name_of(format));
    expect_dequantized(source, quantize_integers(source.config, source.bytes(), format));
  }
}

// The sizes of these models are no multiples of 32, and the last two have experts.
TEST(IntegerEngine, EveryFamilyIsTheModelOfItsNumbers) {
  for (const char* name :
       {"llama", "llama_bf16", "qwen3", "gemma3", "deepseek_v2", "qwen3_moe", "mixtral"}) {
    SCOPED_TRACE(name);
    const SourceModel source = golden_model(name);
    expect_dequantized(source,
                       quantize_integers(source.config, source.bytes(),
                                         {.tool = IntegerTool::kCompressedPack, .group_size = -1}));
  }
}

TEST(IntegerEngine, AMatrixThatIsNotQuantizedKeepsItsType) {
  const SourceModel source = random_model();
  for (const IntegerTool tool : {IntegerTool::kGptq, IntegerTool::kCompressedBytes}) {
    IntegerCheckpoint mixed =
        quantize_integers(source.config, source.bytes(),
                          {.tool = tool, .bits = 8, .group_size = -1, .symmetric = true});
    const std::string module = "model.layers.0.mlp.down_proj";
    std::erase_if(mixed.tensors,
                  [&](const auto& tensor) { return tensor.first.starts_with(module); });
    mixed.tensors[module + ".weight"] = mixed.dequantized.at(module + ".weight");
    expect_dequantized(source, mixed);
  }
}

TEST(IntegerEngine, OutputsDoNotDependOnBatchOrThreads) {
  using Tool = IntegerTool;
  const SourceModel source = random_model();
  const std::vector<IntegerFormat> formats = {
      {.tool = Tool::kAwq},
      {.tool = Tool::kGptq},
      {.tool = Tool::kGptq, .act_order = true},
      {.tool = Tool::kCompressedPack, .symmetric = true, .scales = "BF16"},
      {.tool = Tool::kCompressedBytes, .bits = 8, .group_size = -1, .symmetric = true}};
  for (const IntegerFormat& format : formats) {
    SCOPED_TRACE(name_of(format));
    const ScratchDirectory scratch;
    const EngineConfig files =
        written(scratch, quantize_integers(source.config, source.bytes(), format));
    for (const char* const activations : {"f32", "int8"}) {
      EngineConfig config = files;
      config.cpu_activations = activations;
      const Outcome together = run(config);
      EXPECT_EQ(together.weight_dtype, fmt::format("i{}", format.bits));
      config.num_threads = 1;
      config.max_num_seqs = 1;
      testing::expect_same(run(config).outputs, together.outputs);
      config.max_num_batched_tokens = 16;
      testing::expect_same(run(config).outputs, together.outputs);
    }
  }
}

TEST(IntegerEngine, FourBitsTakeAboutFourBits) {
  const SourceModel source = abacus_model();
  const ScratchDirectory scratch;
  const Outcome got =
      run(written(scratch, quantize_integers(source.config, source.bytes(), IntegerFormat{})));
  constexpr int64_t kLayer = 384 * (512 + 256 + 256) + 512 * 384 + 3 * 384 * 1024;
  constexpr int64_t kEmbedding = 4096 * 384 * 2;  // BF16
  constexpr int64_t kNorms = 17 * 384 * 4;
  EXPECT_EQ(got.weight_bytes, 8 * (kLayer / 2 + kLayer / 128 * 3) + kEmbedding + kNorms);
}

// Old versions of AutoGPTQ store a bias of zeros for every matrix.
TEST(IntegerEngine, BiasesOfZerosAreLeftOut) {
  const SourceModel source = random_model();
  IntegerCheckpoint checkpoint =
      quantize_integers(source.config, source.bytes(), {.tool = IntegerTool::kGptq});
  const std::string name = "model.layers.1.self_attn.q_proj.bias";
  std::vector<float> bias(256, 0.0F);
  checkpoint.tensors[name] = testing::stored_floats({256}, bias);
  expect_dequantized(source, checkpoint);
  bias[7] = 0.5F;
  checkpoint.tensors[name] = testing::stored_floats({256}, bias);
  const ScratchDirectory scratch;
  const auto engine = Engine::create(written(scratch, checkpoint));
  EXPECT_THAT(engine.status().message(),
              AllOf(HasSubstr(name), HasSubstr("got 0.5 as number 7, expected zeros")));
}

TEST(IntegerEngine, DummyWeightsHaveTheFormat) {
  const SourceModel source = random_model();
  const std::vector<IntegerFormat> formats = {{.tool = IntegerTool::kAwq},
                                              {.tool = IntegerTool::kGptq},
                                              {.tool = IntegerTool::kGptq, .act_order = true},
                                              {.tool = IntegerTool::kCompressedPack}};
  for (const IntegerFormat& format : formats) {
    const ScratchDirectory scratch;
    const IntegerCheckpoint checkpoint = quantize_integers(source.config, source.bytes(), format);
    const Outcome real = run(written(scratch, checkpoint));
    EngineConfig config = config_for(scratch.path());
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
TEST(IntegerEngine, DummyWeightsHaveOneMagnitudeForAllBits) {
  const SourceModel source = random_model();
  for (const IntegerTool tool : {IntegerTool::kGptq, IntegerTool::kCompressedPack}) {
    for (const int bits : {4, 8}) {
      const ScratchDirectory scratch;
      EngineConfig config = written(
          scratch, quantize_integers(source.config, source.bytes(), {.tool = tool, .bits = bits}));
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

std::string error_of(const IntegerCheckpoint& checkpoint) {
  const ScratchDirectory scratch;
  const auto engine = Engine::create(written(scratch, checkpoint));
  return engine.ok() ? "" : engine.status().message();
}

using Change = std::function<void(StoredTensors&)>;

Change erase(const std::string& name) {
  return [=](StoredTensors& tensors) { ASSERT_EQ(tensors.erase(name), 1U); };
}

Change reshape(const std::string& name, std::vector<int64_t> shape) {
  return [=](StoredTensors& tensors) { tensors.at(name).shape = shape; };
}

// Stores a tensor of 4-byte elements as I8 of the same shape.
Change store_as_bytes(const std::string& name) {
  return [=](StoredTensors& tensors) {
    StoredTensor& tensor = tensors.at(name);
    tensor.dtype = "I8";
    tensor.bytes.resize(tensor.bytes.size() / 4);
  };
}

// Overwrites the first numbers.
template <typename T>
Change set_first(const std::string& name, std::vector<T> numbers) {
  return [=](StoredTensors& tensors) {
    std::memcpy(tensors.at(name).bytes.data(), numbers.data(), numbers.size() * sizeof(T));
  };
}

TEST(IntegerEngine, FaultyTensorsAreNamedWithTheirFile) {
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
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  struct Case {
    IntegerFormat format;
    Change change;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {gptq, erase(q + ".scales"), {q + ".scales", "missing"}},
      {gptq, erase(q + ".qzeros"), {q + ".qzeros", "missing"}},
      {gptq, reshape(q + ".qweight", {32, 4}), {q + ".qweight", "got [32, 4], expected [4, 32]"}},
      {gptq,
       [&](StoredTensors& tensors) { tensors.at(q + ".qzeros").dtype = "F32"; },
       {q + ".qzeros", "got f32, expected i32"}},
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
         tensors[k + ".weight"] = testing::stored_floats({16, 32}, std::vector<float>(512));
       },
       {k + ".weight", "got f32, expected i4"}},
      {packed,
       set_first<float>(q + ".weight_scale", {nan}),
       {q + ".weight_scale", "got nan as number 0, expected finite numbers; download"}},
      {packed, erase(q + ".weight_zero_point"), {q + ".weight_zero_point", "missing"}},
      {packed,
       set_first<int64_t>(q + ".weight_shape", {32, 40}),
       {q + ".weight_shape", "got [32, 40], expected [32, 32]"}},
      {bytes, set_first<float>(q + ".input_scale", {infinity}), {q + ".input_scale", "got inf"}},
      {bytes, erase(q + ".weight_scale"), {q + ".weight_scale", "missing"}}};
  for (const Case& fault : cases) {
    IntegerCheckpoint checkpoint = quantize_integers(source.config, source.bytes(), fault.format);
    // The MLP's matrices have 28 columns.
    if (fault.format.group_size == 16) {
      std::erase_if(checkpoint.tensors, [](const auto& tensor) {
        return tensor.first.find("mlp.down_proj") != std::string::npos;
      });
      for (const auto& [name, tensor] : checkpoint.dequantized) {
        if (name.find("mlp.down_proj") != std::string::npos) checkpoint.tensors[name] = tensor;
      }
    }
    fault.change(checkpoint.tensors);
    const std::string error = error_of(checkpoint);
    EXPECT_THAT(error, Not(HasSubstr("\n")));
    for (const std::string& text : fault.expected) EXPECT_THAT(error, HasSubstr(text));
  }
}

// A checkpoint whose config.json has no quantization.
TEST(IntegerEngine, BytesInAnUnquantizedModelAreRefusedByName) {
  const SourceModel source = golden_model("llama");
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight"}) {
    IntegerCheckpoint checkpoint = quantize_integers(
        source.config, source.bytes(), {.tool = IntegerTool::kCompressedPack, .group_size = -1});
    checkpoint.config_json = source.config;
    checkpoint.tensors = checkpoint.dequantized;
    store_as_bytes(name)(checkpoint.tensors);
    EXPECT_THAT(error_of(checkpoint),
                AllOf(HasSubstr(name), HasSubstr("got i8, expected f32, f16 or bf16")));
  }
}

// Integers of AWQ, GPTQ and compressed-tensors are multiplied by int8 activations, as those of
// GGUF.
TEST(IntegerEngine, ComputesWithInt8Activations) {
  const SourceModel source = random_model();
  const IntegerCheckpoint checkpoint =
      quantize_integers(source.config, source.bytes(), {.tool = IntegerTool::kGptq});
  const ScratchDirectory scratch;
  EngineConfig config = written(scratch, checkpoint);
  const Outcome exact = run(config);
  config.cpu_activations = "int8";
  const Outcome rounded = run(config);
  const double largest = testing::largest_difference(rounded.outputs, exact.outputs);
  EXPECT_GT(largest, 0.0);
  EXPECT_LT(largest, 1.5);
  RecordProperty("largest", fmt::format("{:.2f}", largest));
}

TEST(IntegerEngine, GroupsAndWordsThatAreNotWholeAreNamed) {
  const SourceModel source = golden_model("llama");
  const auto error = [&](const IntegerFormat& format) {
    return error_of(quantize_integers(source.config, source.bytes(), format));
  };
  EXPECT_THAT(error({.tool = IntegerTool::kCompressedPack, .group_size = 16}),
              AllOf(HasSubstr("model.layers.0.mlp.down_proj.weight_packed"),
                    HasSubstr("got 28 columns, expected a multiple of the 16 columns of a group")));
  EXPECT_THAT(error({.tool = IntegerTool::kGptq, .group_size = -1}),
              AllOf(HasSubstr("model.layers.0.mlp."),
                    HasSubstr("got 28 rows, expected a multiple of the 8 rows of a word")));
}

TEST(IntegerEngine, ATruncatedFileIsRefused) {
  const SourceModel source = golden_model("llama");
  const IntegerCheckpoint checkpoint = quantize_integers(
      source.config, source.bytes(), {.tool = IntegerTool::kCompressedPack, .group_size = -1});
  const std::vector<std::byte> bytes = safetensors_file(checkpoint.tensors);
  const ScratchDirectory scratch;
  const EngineConfig config = written(scratch, checkpoint);
  for (const size_t size : {bytes.size() - 1, bytes.size() / 2, size_t{7}, size_t{0}}) {
    fs::resize_file(scratch.path() / "model.safetensors", size);
    const auto engine = Engine::create(config);
    EXPECT_THAT(engine.status().message(), HasSubstr("model.safetensors"));
  }
}

}  // namespace
}  // namespace quire
