// The checkpoints of the source tree, which tests convert, and the numbers of their tensors.
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/reference_layer.h"
#include "support/shared_data.h"
#include "tensor/dtype.h"
#include "tensor/safetensors.h"

namespace quire::testing {

struct SourceModel {
  std::string config;   // the text of config.json
  std::string weights;  // the bytes of model.safetensors

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(weights)); }
};

inline SourceModel read_source_model(const std::filesystem::path& config,
                                     const std::filesystem::path& weights) {
  return {read_file(config, 1 << 20).value(), read_file(weights, size_t{64} << 20).value()};
}

// A directory of tests/golden/models, whose configurations share the weights.
inline SourceModel golden_model(const std::string& name, const std::string& config = "default") {
  const auto folder = source_path("tests/golden/models") / name;
  return read_source_model(folder / (config + ".config.json"), folder / "model.safetensors");
}

// The model that is embedded in the binary.
inline SourceModel abacus_model() {
  return read_source_model(abacus_path() / "config.json", abacus_path() / "model.safetensors");
}

// A Llama with random weights in BF16: 2 layers, vocabulary 128, all rows and columns multiples of
// 128, so that every quantized format applies. It has a sixteenth of the embedded model's weights.
inline SourceModel random_model() {
  constexpr int64_t kHidden = 256;
  constexpr int64_t kKv = 128;
  constexpr int64_t kIntermediate = 384;
  std::mt19937 generator(1);
  StoredTensors tensors;
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns) {
    std::normal_distribution<float> numbers(0.0F, 1.0F / std::sqrt(static_cast<float>(columns)));
    StoredTensor& tensor = tensors[name + ".weight"] = {"BF16", {rows, columns}, {}};
    tensor.bytes.resize(static_cast<size_t>(2 * rows * columns));
    for (int64_t i = 0; i < rows * columns; ++i) {
      const uint16_t bits = f32_to_bf16(numbers(generator));
      std::memcpy(&tensor.bytes[static_cast<size_t>(2 * i)], &bits, 2);
    }
  };
  const auto add_norm = [&](const std::string& name) {
    tensors[name + ".weight"] = stored_floats({kHidden}, std::vector<float>(kHidden, 1.0F));
  };
  add("model.embed_tokens", 128, kHidden);
  add_norm("model.norm");
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add_norm(layer + "input_layernorm");
    add_norm(layer + "post_attention_layernorm");
    add(layer + "self_attn.q_proj", kHidden, kHidden);
    add(layer + "self_attn.k_proj", kKv, kHidden);
    add(layer + "self_attn.v_proj", kKv, kHidden);
    add(layer + "self_attn.o_proj", kHidden, kHidden);
    add(layer + "mlp.gate_proj", kIntermediate, kHidden);
    add(layer + "mlp.up_proj", kIntermediate, kHidden);
    add(layer + "mlp.down_proj", kHidden, kIntermediate);
  }
  const std::vector<std::byte> file = safetensors_file(tensors);
  return {R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":128,
      "hidden_size":256,"intermediate_size":384,"num_hidden_layers":2,"num_attention_heads":4,
      "num_key_value_heads":2,"head_dim":64,"max_position_embeddings":512,"rms_norm_eps":1e-5,
      "rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":true,
      "torch_dtype":"bfloat16"})",
          std::string(reinterpret_cast<const char*>(file.data()), file.size())};
}

// The numbers of a tensor in F32, F16 or BF16.
inline std::vector<float> floats_of(const SafetensorsEntry& entry) {
  const bool is_f32 = entry.dtype == "F32";
  std::vector<float> numbers(entry.bytes.size() / (is_f32 ? 4 : 2));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (is_f32) {
      std::memcpy(&numbers[i], entry.bytes.data() + 4 * i, 4);
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, entry.bytes.data() + 2 * i, 2);
    numbers[i] = entry.dtype == "F16" ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
  return numbers;
}

}  // namespace quire::testing
