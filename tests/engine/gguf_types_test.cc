// A dense model in every type of GGUF files, through the whole engine: its log probabilities are
// near those of the F32 numbers that its blocks stand for, and have the same bits whatever the
// batch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpu/ops/gemm_bf16.h"
#include "engine/logprob_difference.h"
#include "engine/tiny_engine.h"
#include "support/gguf_bytes.h"
#include "support/gguf_quantization.h"
#include "support/quantized_matrices.h"
#include "support/scratch_directory.h"
#include "tensor/gguf_blocks.h"

namespace quire {
namespace {

using testing::Collected;
using testing::GgufWriter;
using testing::ScratchDirectory;

GgufWriter sized_llama() {
  return GgufWriter()
      .text("general.architecture", "llama")
      .number("llama.embedding_length", 256)
      .number("llama.feed_forward_length", 512)
      .number("llama.block_count", 2)
      .number("llama.attention.head_count", 4)
      .number("llama.attention.head_count_kv", 2)
      .real("llama.attention.layer_norm_rms_epsilon", 1e-6F)
      .number("llama.context_length", 512);
}

std::vector<std::pair<std::string, std::vector<int64_t>>> matrices() {
  std::vector<std::pair<std::string, std::vector<int64_t>>> all = {{"token_embd.weight", {96, 256}},
                                                                   {"output.weight", {96, 256}}};
  for (int layer = 0; layer < 2; ++layer) {
    const auto add = [&](std::string_view name, int64_t rows, int64_t columns) {
      all.push_back({fmt::format("blk.{}.{}.weight", layer, name), {rows, columns}});
    };
    add("attn_q", 256, 256);
    add("attn_k", 128, 256);
    add("attn_v", 128, 256);
    add("attn_output", 256, 256);
    add("ffn_gate", 512, 256);
    add("ffn_up", 512, 256);
    add("ffn_down", 256, 512);
  }
  return all;
}

// Appends random numbers of a root mean square of about `size`, as a block and as F32.
void append_block(const GgufBlockType& type, float size, std::mt19937& random, std::string& bytes,
                  std::vector<float>& numbers) {
  std::vector<std::byte> block(static_cast<size_t>(type.block_bytes));
  std::vector<float> values(static_cast<size_t>(type.block_elements));
  if (type.plain) {
    const float number = size * std::normal_distribution<float>()(random);
    quantize(type, &number, block.data());
  } else {
    for (std::byte& byte : block) byte = static_cast<std::byte>(random());
    std::vector<float> signs;
    for (size_t i = 0; i < 2; ++i) signs.push_back(random() % 2 == 0 ? 1.0F : -1.0F);
    const auto set_scales = [&](float scale) {
      const std::vector<size_t> offsets = testing::half_offsets(type);
      for (size_t i = 0; i < offsets.size(); ++i) {
        const uint16_t half = f32_to_f16(signs[i] * scale);
        std::memcpy(block.data() + offsets[i], &half, sizeof(half));
      }
    };
    set_scales(1.0F);
    dequantize(type, block.data(), values.data());
    float squares = 0;
    for (const float value : values) squares += value * value;
    set_scales(size / std::sqrt(squares / static_cast<float>(values.size())));
  }
  dequantize(type, block.data(), values.data());
  bytes.append(reinterpret_cast<const char*>(block.data()), block.size());
  numbers.insert(numbers.end(), values.begin(), values.end());
}

// One random model as two files: its matrices in blocks of a type, and as the numbers of these.
struct Files {
  std::string blocks;
  std::string numbers;
};

Files random_model(const GgufBlockType& type) {
  std::mt19937 random(5);
  GgufWriter blocks = sized_llama();
  GgufWriter in_f32 = sized_llama();
  for (const auto& [name, shape] : matrices()) {
    std::string bytes;
    std::vector<float> numbers;
    const float size = 1.0F / std::sqrt(static_cast<float>(shape[1]));
    while (numbers.size() < static_cast<size_t>(shape[0] * shape[1])) {
      append_block(type, size, random, bytes, numbers);
    }
    blocks.tensor(name, shape, type.id, bytes);
    in_f32.floats(name, shape, numbers);
  }
  for (GgufWriter* const writer : {&blocks, &in_f32}) {
    const std::vector<float> ones(256, 1.0F);
    writer->floats("output_norm.weight", {256}, ones);
    for (int layer = 0; layer < 2; ++layer) {
      writer->floats(fmt::format("blk.{}.attn_norm.weight", layer), {256}, ones);
      writer->floats(fmt::format("blk.{}.ffn_norm.weight", layer), {256}, ones);
    }
  }
  return {blocks.file(), in_f32.file()};
}

EngineConfig config_for(const std::string& file, const std::string& activations) {
  EngineConfig config;
  config.model = file;
  config.device = "cpu";
  config.num_threads = 2;
  config.kv_cache_memory = int64_t{8} << 20;
  config.kv_cache_dtype = "f32";  // otherwise by the type of the weights
  config.cpu_activations = activations;
  return config;
}

std::vector<Request> requests() {
  std::vector<Request> all;
  for (const int length : {1, 7, 30, 130}) {
    all.push_back(testing::greedy(testing::tiny_prompt(length, 7), 10));
    all.back().sampling.logprobs = 1;
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

struct Outcome {
  std::vector<Collected> outputs;
  int64_t weight_bytes = 0;
};

Outcome run(const EngineConfig& config) {
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return {};
  return {testing::run_all(*engine, requests()), engine->model_info().weight_bytes};
}

// How products round their inputs: 16 or 8 bits with quantized weights, otherwise as F32 or BF16.
std::vector<std::string> activations_for(const GgufBlockType& type) {
  if (!type.plain) return {"f32", "int8"};
  if (type.plain == DType::kBF16 && cpu::avx512_bf16_usable()) return {"f32", "bf16"};
  return {"f32"};
}

class GgufTypes : public ::testing::TestWithParam<std::string> {};

// docs/cli.md states these bounds. Quantized weights take less than a third of the bytes of F32;
// expanded to F16, they would take half.
TEST_P(GgufTypes, EqualTheNumbersThatTheirBlocksStandFor) {
  const GgufBlockType& type = testing::gguf_type(GetParam());
  const ScratchDirectory scratch;
  const Files files = random_model(type);
  const Outcome expected = run(config_for(scratch.write("numbers.gguf", files.numbers), "f32"));
  const std::string blocks = scratch.write("blocks.gguf", files.blocks);
  for (const std::string& activations : activations_for(type)) {
    const Outcome got = run(config_for(blocks, activations));
    const double largest = testing::largest_difference(got.outputs, expected.outputs);
    if (activations != "f32") {
      EXPECT_GT(largest, 0.0) << activations << " has no effect";
    }
    RecordProperty(activations, fmt::format("{:.1e}", largest));
    EXPECT_LT(largest, activations == "f32" ? 1e-3 : 0.15) << activations;
    if (!type.plain) {
      EXPECT_LT(3 * got.weight_bytes, expected.weight_bytes);
    }
  }
}

TEST_P(GgufTypes, HaveTheSameBitsWhateverTheBatch) {
  const GgufBlockType& type = testing::gguf_type(GetParam());
  const ScratchDirectory scratch;
  const std::string file = scratch.write("m.gguf", random_model(type).blocks);
  for (const std::string& activations : activations_for(type)) {
    EngineConfig config = config_for(file, activations);
    config.enable_prefix_caching = false;
    config.num_threads = 1;
    std::vector<Collected> alone;
    const auto engine = testing::make_engine(config);
    ASSERT_NE(engine, nullptr);
    for (const Request& request : requests()) {
      alone.push_back(testing::run_all(*engine, {request}).front());
    }
    constexpr void (*kChanges[])(EngineConfig&) = {
        [](EngineConfig&) {}, [](EngineConfig& c) { c.num_threads = 3; },
        [](EngineConfig& c) { c.max_num_batched_tokens = 16; },
        [](EngineConfig& c) { c.enable_prefix_caching = true; }};
    for (const auto& change : kChanges) {
      EngineConfig changed = config;
      change(changed);
      testing::expect_same(run(changed).outputs, alone);
    }
  }
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const GgufBlockType& type : gguf_block_types()) names.emplace_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GgufTypes, ::testing::ValuesIn(type_names()),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace quire
