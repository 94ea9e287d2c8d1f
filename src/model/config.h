// Parses and checks config.json and generation_config.json of a Hugging Face checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantization.h"
#include "model/tensor_layout.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire {

// Upper bound of EngineConfig::max_model_len and of ModelConfig::longest_model_len.
inline constexpr int kMaxModelLen = 1 << 24;

// The part of config.json that only the model's own code reads.
struct FamilyConfig {
  virtual ~FamilyConfig() = default;
};

// The properties of a model that the engine reads.
struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM", …
  int hidden_size = 0;
  int num_layers = 0;
  int vocab_size = 0;
  // The longest supported context: the model's positions, extended by its RoPE scaling.
  int longest_model_len = 0;
  std::optional<DType> dtype;          // the checkpoint's, if config.json states it
  std::optional<WeightFormat> format;  // of the layers' matrices; absent: not quantized
  TensorLayout layout;                 // of the checkpoint; GGUF files have their own
  // Fields of config.json that nothing reads and that may matter; for reports.
  std::vector<std::string> unread_fields;
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;
  // The architecture has only the layers ("Qwen3Model"): the checkpoint has no lm_head.
  bool is_headless = false;
  // The model embeds prompts: its steps return hidden states, and it has no lm_head.
  bool embeds = false;
  std::shared_ptr<const FamilyConfig> family;
};

// `source` (a path) names the text in errors. Every size is limited so that products fit 63 bits.
Result<ModelConfig> parse_model_config(std::string_view json, std::string_view source);

// The checkpoint's default sampling parameters; fields that it leaves out are empty.
struct GenerationConfig {
  std::string source = "generation_config.json";  // of the sampling parameters
  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;

  // Whether it states how to sample a token. A repetition penalty alone does not.
  bool states_distribution() const {
    return do_sample == false || temperature || top_p || top_k || min_p;
  }
};

Result<GenerationConfig> parse_generation_config(std::string_view json, std::string_view source);

}  // namespace quire
