// Small mixtures of experts, and a model with delta nets, with random weights, as checkpoints and
// as GGUF files.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_loader.h"
#include "model/weights.h"
#include "support/gguf_conversion.h"
#include "support/reference_layer.h"

namespace quire::testing {

// A model with random weights whose rows are whole blocks of 256 or, of some matrices, of 32.
struct RandomModel {
  std::string name;
  std::string architecture;  // llama.cpp's name
  std::string config;
};

inline std::string sizes(std::string_view architecture, int num_layers = 3) {
  return fmt::format(R"({{"architectures": ["{}"], "hidden_size": 256, "intermediate_size": 256,
      "num_hidden_layers": {}, "num_attention_heads": 4, "vocab_size": 96,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2,)",
                     architecture, num_layers);
}

inline std::string deepseek_sizes(std::string_view architecture, std::string_view routing,
                                  int num_layers = 3) {
  return sizes(architecture, num_layers) + fmt::format(R"(
      "num_key_value_heads": 4, "q_lora_rank": 64, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
      "qk_rope_head_dim": 16, "v_head_dim": 64, "moe_intermediate_size": 64, "n_routed_experts": 8,
      "n_shared_experts": 2, "num_experts_per_tok": 3, "first_k_dense_replace": 1, {}}})",
                                                       routing);
}

inline std::vector<RandomModel> random_models() {
  const std::string heads =
      R"("num_key_value_heads": 2, "head_dim": 64, "num_experts_per_tok": 2,)";
  return {
      {"mixtral", "llama", sizes("MixtralForCausalLM") + heads + R"("num_local_experts": 5})"},
      {"qwen3_moe", "qwen3moe",
       sizes("Qwen3MoeForCausalLM") + heads +
           R"("num_experts": 6, "moe_intermediate_size": 96, "norm_topk_prob": true})"},
      {"deepseek_v2", "deepseek2",
       deepseek_sizes("DeepseekV2ForCausalLM",
                      R"("scoring_func": "softmax", "topk_method": "group_limited_greedy",
                         "n_group": 4, "topk_group": 2, "norm_topk_prob": false,
                         "routed_scaling_factor": 2.0)")},
      {"deepseek_v3", "deepseek2",
       deepseek_sizes("DeepseekV3ForCausalLM",
                      R"("scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 4,
                         "topk_group": 2, "norm_topk_prob": true,
                         "routed_scaling_factor": 2.5)")},
  };
}

// Its first layer has a delta net, whose value heads GGUF files have in another order.
inline RandomModel random_delta_model() {
  return {"qwen3_5", "qwen35",
          sizes("Qwen3_5ForCausalLM", 2) +
              R"("num_key_value_heads": 2, "head_dim": 64, "linear_num_key_heads": 4,
                 "linear_num_value_heads": 8, "linear_key_head_dim": 64,
                 "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
                 "full_attention_interval": 2})"};
}

inline ModelConfig parse(const RandomModel& model) {
  return parse_model_config(model.config, "config.json").value();
}

// With this seed, no token of the tests has experts whose logits differ by less than the errors, so
// that the choice of experts is the same.
inline std::vector<std::byte> random_weights(const ModelConfig& config) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  StoredTensors tensors;
  for (const TensorSpec& spec : list_tensors(config)) {
    const bool is_vector = spec.shape.rank() == 1;
    const bool is_norm = is_vector && spec.name.ends_with("norm.weight");
    const float scale = is_vector ? 0.1F : 1.0F / std::sqrt(static_cast<float>(spec.shape[1]));
    std::vector<float> values(static_cast<size_t>(spec.shape.num_elements()));
    for (float& value : values) value = (is_norm ? 1.0F : 0.0F) + scale * normal(random);
    std::vector<int64_t> shape;
    for (int i = 0; i < spec.shape.rank(); ++i) shape.push_back(spec.shape[i]);
    tensors[spec.name] = stored_floats(shape, values);
  }
  return safetensors_file(tensors);
}

// f16: as GgufSource::f16.
inline std::string gguf_of(const RandomModel& model, std::string_view matrices,
                           const std::vector<std::string>& f16 = {}) {
  const std::vector<std::byte> weights = random_weights(parse(model));
  GgufSource source = {model.config, weights};
  source.f16 = f16;
  return convert_to_gguf(source, model.architecture, matrices);
}

}  // namespace quire::testing
