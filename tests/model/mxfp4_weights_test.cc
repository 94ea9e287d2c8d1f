// The experts of gpt-oss in MXFP4, from the tensors of a checkpoint, and random ones.
#include "model/mxfp4_weights.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/ops/cpu_ops.h"
#include "model/model_loader.h"
#include "support/reference_layer.h"
#include "support/value_of.h"
#include "tensor/checkpoint.h"

namespace quire::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kHidden = 96;
constexpr int kInner = 64;
constexpr int kExperts = 3;

// The fields of the published config.json. `differences` come first.
std::string config_json(int num_layers, int num_experts, int width, std::string_view differences) {
  return fmt::format(
      R"({{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", {}
          "hidden_size": {}, "num_hidden_layers": {}, "num_local_experts": {},
          "num_experts_per_tok": 2, "experts_per_token": 2, "hidden_act": "silu",
          "initial_context_length": 4096, "sliding_window": 128, "swiglu_limit": 7.0,
          "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 150000,
          "rope_scaling": {{"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
          "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}},
          "attention_bias": true, "tie_word_embeddings": false, "eos_token_id": 200002,
          "quantization_config": {{"quant_method": "mxfp4", "modules_to_not_convert": [
          "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
          "lm_head"]}}}})",
      differences, width, num_layers, num_experts);
}

ModelConfig tiny() {
  return value_of(parse_model_config(
      config_json(1, kExperts, kHidden,
                  R"("intermediate_size": 64, "vocab_size": 50, "num_attention_heads": 4,
                     "num_key_value_heads": 2, "head_dim": 16,)"),
      "config.json"));
}

constexpr const char* kExpertsName = "model.layers.0.mlp.experts.";

StoredTensor random_bytes(const std::vector<int64_t>& shape, uint32_t least, uint32_t count,
                          uint32_t seed) {
  std::mt19937 random(seed);
  StoredTensor tensor = {"U8", shape, {}};
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  for (int64_t i = 0; i < size; ++i) {
    tensor.bytes.push_back(static_cast<std::byte>(least + random() % count));
  }
  return tensor;
}

// The tensors as they are published.
StoredTensors published() {
  RandomTensors random(3);
  for (const TensorSpec& spec : list_tensors(tiny())) {
    if (spec.name.find(".experts.") != std::string::npos) continue;
    std::string name = spec.name;
    const size_t router = name.find("mlp.gate.");
    if (router != std::string::npos) name.replace(router, 9, "mlp.router.");
    std::vector<int64_t> shape;
    for (int axis = 0; axis < spec.shape.rank(); ++axis) shape.push_back(spec.shape[axis]);
    random.add(name, shape, 0.0F);
  }
  const std::string experts = kExpertsName;
  random.add(experts + "gate_up_proj_bias", {kExperts, 2 * kInner}, 0.0F);
  random.add(experts + "down_proj_bias", {kExperts, kHidden}, 0.0F);
  StoredTensors tensors = std::move(random.tensors);
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns, uint32_t seed) {
    const int64_t groups = columns / 32;
    tensors[experts + name + "_blocks"] = random_bytes({kExperts, rows, groups, 16}, 0, 256, seed);
    tensors[experts + name + "_scales"] = random_bytes({kExperts, rows, groups}, 110, 20, seed + 1);
  };
  add("gate_up_proj", int64_t{2} * kInner, kHidden, 5);
  add("down_proj", kHidden, kInner, 7);
  return tensors;
}

// A checkpoint, and what the decoder reads of it.
struct Presented {
  explicit Presented(const StoredTensors& tensors)
      : file(safetensors_file(tensors)),
        config(tiny()),
        source(value_of(
            present_weights(Checkpoint::from_memory(file, "model.safetensors").value(), config))) {}

  // The error of a load; empty: there is none.
  std::string load() {
    ThreadPool pool(1);
    const auto ops = make_cpu_ops(pool);
    ModelLimits limits;
    limits.max_model_len = limits.max_num_tokens = limits.max_num_logit_rows = 8;
    const auto model = load_model(config, *source, *ops, limits);
    return model.ok() ? "" : model.status().message();
  }

  std::vector<std::byte> file;
  ModelConfig config;
  std::unique_ptr<WeightSource> source;
};

// Row `row` of an expert's matrix in the stored stack, by the definition of the format.
std::vector<float> numbers_of(const StoredTensors& tensors, const std::string& name, int64_t row) {
  constexpr float kMagnitudes[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const StoredTensor& blocks = tensors.at(kExpertsName + name + "_blocks");
  const StoredTensor& scales = tensors.at(kExpertsName + name + "_scales");
  const int64_t groups = blocks.shape[2];
  std::vector<float> numbers;
  for (int64_t column = 0; column < groups * 32; ++column) {
    const int64_t at = row * groups + column / 32;
    const int byte =
        std::to_integer<int>(blocks.bytes[static_cast<size_t>(at * 16 + column % 32 / 2)]);
    const int code = column % 2 == 0 ? byte & 0xF : byte >> 4;
    const float magnitude = kMagnitudes[code % 8];
    const int exponent = std::to_integer<int>(scales.bytes[static_cast<size_t>(at)]) - 127;
    numbers.push_back(std::ldexp(code < 8 ? magnitude : -magnitude, exponent));
  }
  return numbers;
}

std::vector<float> numbers_of(const BlockMatrix& matrix, int64_t row) {
  std::vector<float> numbers(static_cast<size_t>(matrix.shape[1]));
  for (int64_t i = 0; i < matrix.blocks_per_row(); ++i) {
    dequantize(*matrix.type, matrix.row(row) + i * matrix.type->block_bytes,
               numbers.data() + i * matrix.type->block_elements);
  }
  return numbers;
}

TEST(Mxfp4Weights, AreBlocksOfTheExpertsMatrices) {
  const StoredTensors tensors = published();
  Presented model(tensors);
  EXPECT_THAT(model.source->names(), Each(Not(HasSubstr("_scales"))));
  EXPECT_THAT(model.source->names(), Each(Not(HasSubstr("_blocks"))));
  EXPECT_EQ(block_type_names(*model.source), "MXFP4");
  for (int expert = 0; expert < kExperts; ++expert) {
    for (const auto& [name, stack, rows, first, step, columns] :
         {std::tuple("gate_proj", "gate_up_proj", kInner, 0, 2, kHidden),
          std::tuple("up_proj", "gate_up_proj", kInner, 1, 2, kHidden),
          std::tuple("down_proj", "down_proj", kHidden, 0, 1, kInner)}) {
      const std::string matrix = fmt::format("{}{}.{}.weight", kExpertsName, expert, name);
      SCOPED_TRACE(matrix);
      ASSERT_THAT(model.source->names(), Contains(matrix));
      const Shape shape = {rows, columns};
      const BlockMatrix blocks = value_of(model.source->blocks(matrix, shape));
      const TensorView plain = value_of(model.source->tensor(matrix, shape));
      ASSERT_EQ(plain.dtype, DType::kBF16);
      for (int64_t row = 0; row < rows; ++row) {
        const std::vector<float> expected =
            numbers_of(tensors, stack, expert * rows * step + row * step + first);
        ASSERT_EQ(numbers_of(blocks, row), expected) << row;
        for (int64_t i = 0; i < columns; ++i) {
          ASSERT_EQ(element_as_f32(plain, row * columns + i), expected[static_cast<size_t>(i)]);
        }
      }
      model.source->release(matrix);
    }
  }
  EXPECT_EQ(model.load(), "");
}

TEST(Mxfp4Weights, ThatAreWrongAreRefusedByName) {
  const std::string stack = std::string(kExpertsName) + "gate_up_proj";
  StoredTensors nan = published();
  nan[stack + "_scales"].bytes.back() = std::byte{255};
  EXPECT_THAT(Presented(nan).load(),
              HasSubstr("model.safetensors: tensor \"" + stack +
                        "_blocks\" has a scale that is not a number; got an exponent of 255, "
                        "expected at most 254"));
  EXPECT_THAT(Presented(published())
                  .source->blocks(fmt::format("{}0.down_proj.weight", kExpertsName), {kHidden, 40})
                  .status()
                  .message(),
              HasSubstr("down_proj_blocks\" is in MXFP4; got the shape [96, 40]"));
}

// Before any is read, so that a report of the checkpoint has the fault.
TEST(Mxfp4Weights, ThatDoNotBelongTogetherAreRefusedWhenTheyArePresented) {
  const std::string stack = std::string(kExpertsName) + "gate_up_proj";
  const auto error_with = [](const auto& change) {
    StoredTensors tensors = published();
    change(tensors);
    const std::vector<std::byte> file = safetensors_file(tensors);
    ModelConfig config = tiny();
    const auto source =
        present_weights(Checkpoint::from_memory(file, "model.safetensors").value(), config);
    return source.ok() ? check_stored_tensors(config, **source).message()
                       : source.status().message();
  };
  EXPECT_EQ(error_with([](StoredTensors&) {}), "");
  EXPECT_THAT(error_with([&](StoredTensors& t) { t[stack + "_blocks"].dtype = "I8"; }),
              HasSubstr("tensor \"" + stack +
                        "_blocks\" has another type than MXFP4; got i8, expected u8"));
  EXPECT_THAT(error_with([&](StoredTensors& t) { t[stack + "_scales"].dtype = "I8"; }),
              HasSubstr("_scales\" has another type than MXFP4; got i8"));
  EXPECT_THAT(error_with([&](StoredTensors& t) { t.erase(stack + "_scales"); }),
              HasSubstr("_blocks\" is in MXFP4; got no tensor of its exponents"));
  EXPECT_THAT(error_with([&](StoredTensors& t) {
                StoredTensor& blocks = t[stack + "_blocks"];
                std::swap(blocks.shape[2], blocks.shape[3]);
              }),
              HasSubstr("_blocks\" has another shape than blocks of MXFP4; got"));
  EXPECT_THAT(error_with([&](StoredTensors& t) {
                StoredTensor& scales = t[stack + "_scales"];
                std::swap(scales.shape[1], scales.shape[2]);
              }),
              HasSubstr("_scales\" has not one exponent per block; got"));
  EXPECT_THAT(error_with([&](StoredTensors& t) {
                for (const char* const end : {"_blocks", "_scales"}) {
                  StoredTensor& part = t[stack + end];
                  part.shape[2] -= 1;
                  part.bytes.resize(part.bytes.size() / 3 * 2);
                }
              }),
              HasSubstr("has another shape than the configuration says; got [64, 64], expected "
                        "[64, 96]"));
  EXPECT_THAT(error_with([&](StoredTensors& t) {
                t[stack] = random_bytes({kExperts, kHidden, 4 * kInner}, 0, 1, 1);
                t[stack].dtype = "BF16";
                t[stack].shape[2] /= 2;
              }),
              HasSubstr("gate_up_proj"));
}

TEST(Mxfp4Weights, HaveSizesOfWholeGroups) {
  const auto error_of = [](int width, int inner) {
    return parse_model_config(config_json(1, kExperts, width,
                                          fmt::format(R"("intermediate_size": {}, "vocab_size": 50,
                                          "num_attention_heads": 4, "num_key_value_heads": 2,
                                          "head_dim": 16,)",
                                                      inner)),
                              "config.json")
        .status()
        .message();
  };
  EXPECT_EQ(error_of(96, 64), "");
  EXPECT_THAT(error_of(96, 33), HasSubstr("intermediate_size; got 33, expected a multiple of 32"));
  EXPECT_THAT(error_of(80, 64), HasSubstr("hidden_size; got 80, expected a multiple of 32"));
}

// The published sizes: the experts take 4.25 bits per weight, and the rest 16.
TEST(Mxfp4Weights, OfRandomModelsTakeTheSizeOfTheCheckpoint) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  for (const auto& [num_layers, num_experts, gib] : {std::tuple(24, 32, 12.8), {36, 128, 60.8}}) {
    ModelConfig config =
        value_of(parse_model_config(config_json(num_layers, num_experts, 2880,
                                                R"("intermediate_size": 2880, "vocab_size": 201088,
                       "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,)"),
                                    "config.json"));
    const auto source =
        value_of(present_weights(std::make_unique<DummyWeights>(DType::kBF16), config));
    const WeightPlan plan = value_of(plan_weights(config, *source, *ops, {}));
    EXPECT_NEAR(static_cast<double>(plan.num_bytes) / (1 << 30), gib, 0.05);
    EXPECT_EQ(describe_quantization(config, *source, *ops, plan),
              "blocks of MXFP4, computed as they are");
    const std::string matrix = "model.layers.1.mlp.experts.3.up_proj.weight";
    const BlockMatrix blocks = value_of(source->blocks(matrix, {2880, 2880}));
    double squares = 0;
    for (const float number : numbers_of(blocks, 7)) squares += double{number} * number;
    EXPECT_NEAR(std::sqrt(squares / 2880), 0.02, 0.005);
    source->release(matrix);
  }
}

}  // namespace
}  // namespace quire::testing
