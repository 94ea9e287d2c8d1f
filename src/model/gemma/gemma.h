// Gemma 2 and Gemma 3, text only: norms before and after each sub-layer that multiply by 1 + w,
// embeddings scaled by the root of their width, a gated GELU MLP, windows on some of the layers,
// and soft caps (Gemma 2) or QK-norms and a rotation for windows of its own (Gemma 3).
#pragma once

#include <memory>
#include <vector>

#include "model/config_fields.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

std::shared_ptr<const FamilyConfig> parse_gemma2(ConfigFields& fields, ModelConfig& config);
std::shared_ptr<const FamilyConfig> parse_gemma3(ConfigFields& fields, ModelConfig& config);
// Gemma 3 with a vision tower, which is not loaded.
std::shared_ptr<const FamilyConfig> parse_gemma3_multimodal(ConfigFields& fields,
                                                            ModelConfig& config);
std::vector<TensorSpec> list_gemma_tensors(const ModelConfig& config);
Result<std::unique_ptr<Model>> load_gemma(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadProgress& progress);

}  // namespace quire
