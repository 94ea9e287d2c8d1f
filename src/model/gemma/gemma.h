// Gemma 2 and Gemma 3, text only: norms before and after each sub-layer that multiply by 1 + w,
// embeddings scaled by the root of their width, a gated GELU MLP, and windows on some layers. Gemma
// 2 has soft caps; Gemma 3 has QK-norms and a separate rotation for layers with a window.
#pragma once

#include <memory>
#include <vector>

#include "model/config.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

class ConfigFields;

std::shared_ptr<const FamilyConfig> parse_gemma2(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_gemma3(ConfigFields& fields, ModelConfig& config);
// Parses Gemma 3 with a vision tower; the vision tower is not loaded.
std::shared_ptr<const FamilyConfig> parse_gemma3_multimodal(ConfigFields& fields,
                                                            ModelConfig& config);
// The soft cap of the logits of a Gemma; 0: off.
float gemma_logits_softcap(const ModelConfig& config);
std::vector<TensorSpec> list_gemma_tensors(const ModelConfig& config);
Result<std::unique_ptr<Model>> load_gemma(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadOptions& options);

}  // namespace quire
