// config.json and generation_config.json of a Hugging Face checkpoint, checked and made plain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/rope.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire {

// What the families differ in is data here: nothing below asks which family it is.
struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM", …
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  float rms_norm_eps = 1e-6F;
  int max_position_embeddings = 0;
  RopeConfig rope;
  bool tie_word_embeddings = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  std::vector<int> layer_windows;  // [num_layers]; 0: the layer sees everything
  std::optional<DType> dtype;      // of the checkpoint, where it says
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;
};

// `source` names the text in errors (a path). Every size is in a range whose products fit 63 bits.
Result<ModelConfig> parse_model_config(std::string_view json, std::string_view source);

// All weights, tied embeddings counted once.
int64_t num_parameters(const ModelConfig& config);

// The checkpoint's own wishes; what it does not say is empty.
struct GenerationConfig {
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
};

Result<GenerationConfig> parse_generation_config(std::string_view json, std::string_view source);

}  // namespace quire
