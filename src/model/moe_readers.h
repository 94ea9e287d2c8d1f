// Readers of the fields of config.json that describe a mixture of experts, one per family.
#pragma once

#include "model/model.h"

namespace quire {

class ConfigFields;
struct DecoderConfig;

// Read the fields of an architecture. Other fields of `decoder` have been read before.
void read_qwen3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_mixtral_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_qwen3_vl_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_qwen3_5_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_qwen3_next_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_minimax_m2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_glm4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_glm4_moe_lite(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_hy_v3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_mistral4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_laguna_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_lfm2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_mimo_v2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
// Experts have intermediate_size, and dense layers intermediate_size_mlp.
void read_llama4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
// Experts have intermediate_size and biases.
void read_gpt_oss_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
// Every layer has experts beside an MLP of intermediate_size, or none has.
void read_gemma4_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_ernie_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
// All layers are dense if there are no n_routed_experts.
void read_deepseek_v2_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);
void read_deepseek_v3_moe(ConfigFields& fields, const ModelConfig& config, DecoderConfig& decoder);

}  // namespace quire
