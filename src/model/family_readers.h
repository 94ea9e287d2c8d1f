// Readers of the fields that only one architecture has (FamilyTraits::read_own).
#pragma once

#include "model/decoder_config.h"

namespace quire {

class ConfigFields;

void read_gemma2(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
// Fails if config.json states no rotation, because the published models do not have the default.
void read_ministral3(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_phi3(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_hunyuan_dense(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_smollm3(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
// Computes the MLP's size from intermediate_size and other fields, as the architecture does.
void read_lfm2(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_qwen3_5(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_laguna(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_mimo_v2(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
// Fails if config.json states no rotation, because the published models do not have the default.
void read_gpt_oss(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_muse(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_llama4(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
// Reads heads per kind of layer, layers that share keys and values, and inputs of each layer.
void read_gemma4(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
// If config.json does not have their size, layers have no inputs.
void read_gemma4_unified(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);
void read_gemma3(ConfigFields& fields, ModelConfig& config, DecoderConfig& decoder);

}  // namespace quire
