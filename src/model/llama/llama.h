// The decoder that Llama, Mistral, Mixtral, Qwen2, Qwen3, Qwen3-MoE, DeepSeek-V2 and V3 and MiMo
// share: pre-norm, grouped-query or multi-head latent attention with rotary positions, gated SiLU
// MLP or a mixture of such experts.
#pragma once

#include <memory>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

class ConfigFields;

std::shared_ptr<const FamilyConfig> parse_llama(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_mistral(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_qwen2(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_qwen3(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_qwen3_moe(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_mixtral(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_deepseek_v2(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_deepseek_v3(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_mimo(ConfigFields& fields, ModelConfig& config);
std::vector<TensorSpec> list_llama_tensors(const ModelConfig& config);
Result<std::unique_ptr<Model>> load_llama(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadOptions& options);

}  // namespace quire
